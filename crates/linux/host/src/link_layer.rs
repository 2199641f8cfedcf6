//! What every packet socket (packet(7)) needs.

use crate::sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `PACKET_VNET_HDR` (linux/if_packet.h): a `virtio_net` header before each packet.
pub(crate) const PACKET_VNET_HDR: libc::c_int = 15;

/// Length of an Ethernet header.
pub(crate) const ETHERNET_HEADER: usize = 14;

/// Binds a packet socket to device number `interface`: it receives packets of `protocol`
/// (`ETH_P_ALL`: every one, and those that are sent; 0: none).
pub(crate) fn bind(socket: &impl AsFd, interface: u32, protocol: libc::c_int) -> io::Result<()> {
    let mut address: libc::sockaddr_ll = sys::zeroed();
    address.sll_family = libc::AF_PACKET as libc::sa_family_t;
    address.sll_protocol = (protocol as u16).to_be();
    address.sll_ifindex = interface.cast_signed();
    let length = libc::socklen_t::try_from(size_of_val(&address)).unwrap_or_default();
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the address and its length are those of a live structure.
    sys::check(unsafe { libc::bind(socket, (&raw const address).cast(), length) }).map(drop)
}
