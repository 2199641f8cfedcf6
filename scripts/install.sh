#!/bin/sh
# Installs Longhaul from the files of a release, without Rust.
set -eu

usage() {
    cat <<'END'
Installs Longhaul from the files of a release.

Usage: sh install.sh [--from DIR|URL] [--prefix DIR]
       sh install.sh --uninstall [--prefix DIR]

  --from DIR|URL  folder or https address with SHA256SUMS and the archive
                  (default: the folder of this script)
  --prefix DIR    where to install (default: /usr/local)
  --uninstall     remove what was installed below the prefix

The archive is installed only if its SHA-256 is the one in SHA256SUMS.
END
}

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

# Copies a file of the release: get NAME TARGET.
get() {
    case $from in
    https://*)
        if command -v curl >/dev/null 2>&1; then
            curl -fsSL --proto '=https' --proto-redir '=https' -o "$2" -- "$from/$1"
        elif command -v wget >/dev/null 2>&1; then
            wget -q -O "$2" -- "$from/$1"
        else
            fail "curl or wget is needed to download $from/$1"
        fi || fail "cannot download $from/$1"
        ;;
    *://*) fail "$from: only https:// addresses and folders" ;;
    *) cp -- "$from/$1" "$2" 2>/dev/null || fail "cannot read $from/$1" ;;
    esac
}

# Writes the line of the archive for this machine, of which there has to be one.
expected_archive() {
    [ "$(uname -s)" = Linux ] || fail "Longhaul runs on Linux only, not on $(uname -s)"
    machine=$(uname -m)
    grep -E "^[0-9a-f]{64} [ *]longhaul-[A-Za-z0-9._+-]+-$machine-linux\.tar\.gz$" \
        "$work/SHA256SUMS" >"$work/expected" || fail "$from/SHA256SUMS names no archive for $machine"
    [ "$(grep -c . "$work/expected")" = 1 ] ||
        fail "$from/SHA256SUMS names several archives for $machine: keep one of them"
}

# Sets `tree` to the unpacked archive, whose checksum is right. What is checked is the
# copy that is unpacked.
unpack() {
    get SHA256SUMS "$work/SHA256SUMS"
    expected_archive
    name=$(cut -c 67- "$work/expected")
    get "$name" "$work/$name"
    command -v sha256sum >/dev/null 2>&1 || fail "sha256sum is missing: the archive cannot be verified"
    (cd "$work" && sha256sum -c expected >/dev/null 2>&1) ||
        fail "$name: the checksum is not the one in SHA256SUMS; nothing was installed"
    mkdir "$work/unpacked"
    tar -xzof "$work/$name" -C "$work/unpacked" || fail "cannot unpack $name"
    tree=$work/unpacked/${name%.tar.gz}
    [ -f "$tree/bin/longhaul" ] || fail "$name has no bin/longhaul"
}

# Lists what will be installed, one path below the prefix a line.
list_files() {
    (cd "$tree" && find ./bin ./include ./share -type f 2>/dev/null | sed 's|^\./||' | LC_ALL=C sort)
    echo "$manifest"
}

# Copies a file beside its target and renames it: a program that runs is not changed.
install_file() { # SOURCE TARGET
    mkdir -p -- "$(dirname -- "$2")" && cp -- "$1" "$2.new.$$" || return 1
    case $2 in
    */bin/*) chmod 755 "$2.new.$$" ;;
    *) chmod 644 "$2.new.$$" ;;
    esac
    mv -f -- "$2.new.$$" "$2"
}

# Removes a listed file and the folders that are empty then; the list is not trusted
# with paths that leave the prefix.
remove_file() { # PATH
    case /$1/ in
    */../* | //*) fail "$prefix/$manifest: $1 is no path below the prefix" ;;
    esac
    rm -f -- "$prefix/$1"
    folder=$(dirname -- "$1")
    while [ "$folder" != . ]; do
        case $folder in
        *longhaul*) rmdir -- "$prefix/$folder" 2>/dev/null || return 0 ;;
        esac
        folder=$(dirname -- "$folder")
    done
}

do_install() {
    work=$(mktemp -d)
    trap 'rm -rf -- "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    unpack
    { mkdir -p -- "$prefix" && [ -w "$prefix" ]; } 2>/dev/null ||
        fail "cannot write to $prefix: repeat with sudo, or with --prefix ~/.local"
    list_files >"$work/files"
    while read -r path; do
        [ "$path" = "$manifest" ] || install_file "$tree/$path" "$prefix/$path" ||
            fail "cannot write $prefix/$path"
    done <"$work/files"
    # Files of an earlier version that this one does not have.
    if [ -f "$prefix/$manifest" ]; then
        grep -vxFf "$work/files" "$prefix/$manifest" >"$work/old" || true
        while read -r path; do remove_file "$path"; done <"$work/old"
    fi
    install_file "$work/files" "$prefix/$manifest" || fail "cannot write $prefix/$manifest"
    "$prefix/bin/longhaul" --version || fail "$prefix/bin/longhaul does not run on this machine"
    echo "Installed below $prefix; remove it with: sh install.sh --uninstall --prefix $prefix"
    explain_paths
}

# Says how to start the program where its name alone does not.
explain_paths() {
    bin=$prefix/bin
    case :$PATH: in
    *:$bin:*) ;;
    *) echo "$bin is not in PATH: add it, or run $bin/longhaul" ;;
    esac
    command -v sudo >/dev/null 2>&1 || return 0
    # Readable by root only. Without it, the path that most distributions set.
    secure=$(cat /etc/sudoers /etc/sudoers.d/* 2>/dev/null |
        sed -n 's/^[[:space:]]*Defaults[[:space:]].*secure_path[[:space:]]*=[[:space:]]*"\{0,1\}\([^"]*\).*/\1/p' | tail -n 1)
    case :${secure:-/usr/local/bin:/usr/bin:/bin}: in
    *:$bin:*) ;;
    *) echo "sudo does not search $bin (secure_path): run sudo $bin/longhaul" ;;
    esac
}

do_uninstall() {
    [ -f "$prefix/$manifest" ] || fail "$prefix/$manifest is missing: nothing was installed below $prefix"
    [ -w "$prefix/bin" ] || fail "cannot write to $prefix/bin: repeat with sudo"
    listed=$(cat -- "$prefix/$manifest")
    printf '%s\n' "$listed" | {
        while read -r path; do remove_file "$path"; done
    }
    echo "Removed Longhaul below $prefix"
}

main() {
    manifest=share/longhaul/files
    prefix=/usr/local
    from=
    action=do_install
    umask 022
    while [ $# -gt 0 ]; do
        case $1 in
        --from | --prefix)
            [ -n "${2:-}" ] || fail "$1 needs a value; see --help"
            case $1 in
            --from) from=${2%/} ;;
            --prefix) prefix=${2%/} ;;
            esac
            shift
            ;;
        --uninstall) action=do_uninstall ;;
        -h | --help) usage && exit 0 ;;
        *) fail "unknown argument $1; see --help" ;;
        esac
        shift
    done
    case $prefix in
    /*) ;;
    *) prefix=$(pwd)/$prefix ;;
    esac
    if [ -z "$from" ] && [ $action = do_install ]; then
        from=$(dirname -- "$0")
        [ -f "$from/SHA256SUMS" ] ||
            fail "no SHA256SUMS beside this script: name the release with --from DIR or --from https://…"
    fi
    $action
}

main "$@"
