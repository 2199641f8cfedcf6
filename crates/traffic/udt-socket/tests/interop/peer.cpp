// A peer built with the library UDT 4.11: sends or receives the test pattern.
//
//   peer (listen|connect|rendezvous) PORT (stream|message) (send|receive) BYTES [OUR_PORT]
//   peer throughput (listen|connect) ADDRESS PORT SECONDS
//
// The receiver checks every byte; the exit status says whether all of it was right.

#include <udt/udt.h>

#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what)
{
    std::fprintf(stderr, "%s: %s\n", what, UDT::getlasterror().getErrorMessage());
    std::exit(1);
}

// The byte at a position of the pattern.
unsigned char pattern(uint64_t at)
{
    return static_cast<unsigned char>((at * 2654435761ULL) >> 13);
}

void fill(std::vector<char>& buffer, uint64_t from)
{
    for (size_t i = 0; i < buffer.size(); ++i)
        buffer[i] = static_cast<char>(pattern(from + i));
}

void check(const char* bytes, size_t length, uint64_t from)
{
    for (size_t i = 0; i < length; ++i)
        if (static_cast<unsigned char>(bytes[i]) != pattern(from + i)) {
            std::fprintf(stderr, "wrong at byte %llu\n", static_cast<unsigned long long>(from + i));
            std::exit(1);
        }
}

sockaddr_in address(const char* host, int port)
{
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, host, &a.sin_addr);
    return a;
}

void set(UDTSOCKET u, UDT::SOCKOPT name, int value)
{
    if (UDT::setsockopt(u, 0, name, &value, sizeof value) == UDT::ERROR)
        fail("setsockopt");
}

UDTSOCKET open(bool messages, int buffer)
{
    UDTSOCKET u = UDT::socket(AF_INET, messages ? SOCK_DGRAM : SOCK_STREAM, 0);
    if (buffer > 0) {
        set(u, UDT_FC, buffer / 1456 + 1000);
        set(u, UDT_SNDBUF, buffer);
        set(u, UDT_RCVBUF, buffer);
        set(u, UDP_SNDBUF, 12 << 20);
        set(u, UDP_RCVBUF, 12 << 20);
    }
    return u;
}

UDTSOCKET establish(const std::string& role, const char* host, int port, int own, bool messages, int buffer)
{
    UDTSOCKET u = open(messages, buffer);
    sockaddr_in to = address(host, port);
    if (role == "connect") {
        if (UDT::connect(u, reinterpret_cast<sockaddr*>(&to), sizeof to) == UDT::ERROR)
            fail("connect");
        return u;
    }
    if (role == "rendezvous") {
        bool on = true;
        UDT::setsockopt(u, 0, UDT_RENDEZVOUS, &on, sizeof on);
        sockaddr_in ours = address(host, own);
        if (UDT::bind(u, reinterpret_cast<sockaddr*>(&ours), sizeof ours) == UDT::ERROR)
            fail("bind");
        if (UDT::connect(u, reinterpret_cast<sockaddr*>(&to), sizeof to) == UDT::ERROR)
            fail("connect");
        return u;
    }
    if (UDT::bind(u, reinterpret_cast<sockaddr*>(&to), sizeof to) == UDT::ERROR)
        fail("bind");
    if (UDT::listen(u, 4) == UDT::ERROR)
        fail("listen");
    std::puts("listening");
    std::fflush(stdout);
    sockaddr_storage from;
    int length = sizeof from;
    UDTSOCKET accepted = UDT::accept(u, reinterpret_cast<sockaddr*>(&from), &length);
    if (accepted == UDT::INVALID_SOCK)
        fail("accept");
    return accepted;
}

void send_pattern(UDTSOCKET u, bool messages, uint64_t total)
{
    const size_t block = messages ? 10000 : 1 << 20;
    for (uint64_t sent = 0; sent < total;) {
        std::vector<char> buffer(std::min<uint64_t>(block, total - sent));
        fill(buffer, sent);
        if (messages) {
            int n = UDT::sendmsg(u, buffer.data(), static_cast<int>(buffer.size()), -1, true);
            if (n == UDT::ERROR)
                fail("sendmsg");
            sent += n;
            continue;
        }
        for (size_t done = 0; done < buffer.size();) {
            int n = UDT::send(u, buffer.data() + done, static_cast<int>(buffer.size() - done), 0);
            if (n == UDT::ERROR)
                fail("send");
            done += n;
        }
        sent += buffer.size();
    }
}

void receive_pattern(UDTSOCKET u, bool messages, uint64_t total)
{
    std::vector<char> buffer(1 << 20);
    for (uint64_t received = 0; received < total;) {
        int n = messages ? UDT::recvmsg(u, buffer.data(), static_cast<int>(buffer.size()))
                         : UDT::recv(u, buffer.data(), static_cast<int>(buffer.size()), 0);
        if (n == UDT::ERROR)
            fail("receive");
        check(buffer.data(), n, received);
        received += n;
    }
    std::puts("received");
    std::fflush(stdout);
}

double cpu_seconds()
{
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

// Memory to memory: the listener receives, and both print bytes, seconds and CPU seconds.
void throughput(const std::string& role, const char* host, int port, double seconds)
{
    UDTSOCKET u = establish(role, host, port, 0, false, 256 << 20);
    auto begin = std::chrono::steady_clock::now();
    auto passed = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    std::vector<char> buffer(1 << 20);
    uint64_t bytes = 0;
    while (role != "connect" || passed() < seconds) {
        int n = role == "connect" ? UDT::send(u, buffer.data(), static_cast<int>(buffer.size()), 0)
                                  : UDT::recv(u, buffer.data(), static_cast<int>(buffer.size()), 0);
        if (n == UDT::ERROR)
            break;
        bytes += n;
    }
    std::printf("%llu %.6f %.6f\n", static_cast<unsigned long long>(bytes), passed(), cpu_seconds());
    if (role == "connect") {
        // What is still buffered is not delivered.
        linger none{0, 0};
        UDT::setsockopt(u, 0, UDT_LINGER, &none, sizeof none);
    }
    UDT::close(u);
}

} // namespace

int main(int argc, char** argv)
{
    if (argc < 6)
        return 2;
    UDT::startup();
    if (std::string(argv[1]) == "throughput") {
        throughput(argv[2], argv[3], std::atoi(argv[4]), std::atof(argv[5]));
        UDT::cleanup();
        return 0;
    }
    const std::string role = argv[1];
    const int port = std::atoi(argv[2]);
    const bool messages = std::string(argv[3]) == "message";
    const uint64_t total = std::strtoull(argv[5], nullptr, 10);
    UDTSOCKET u = establish(role, "127.0.0.1", port, argc > 6 ? std::atoi(argv[6]) : 0, messages, 0);
    if (std::string(argv[4]) == "send")
        send_pattern(u, messages, total);
    else
        receive_pattern(u, messages, total);
    UDT::close(u);
    UDT::cleanup();
    return 0;
}
