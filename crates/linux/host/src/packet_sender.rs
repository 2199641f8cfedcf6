//! Sends packets, and trains of packets, out of one Ethernet device (packet(7)).

use crate::link_layer::{self, ETHERNET_HEADER, PACKET_VNET_HDR};
use crate::netlink::Netlink;
use crate::sys;
use crate::tun::VNET_HEADER;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

/// Memory for packets that were sent and that the other end has not processed yet, as requested: as
/// many trains of 64 KiB as the receiving host's steering holds packets (1000).
const BUFFER: libc::c_int = 64 << 20;

/// A socket that sends out of one device.
#[derive(Debug)]
pub struct PacketSender {
    socket: OwnedFd,
    address: [u8; 6],
}

impl PacketSender {
    /// Opens it for a device of the calling thread's network namespace. `address` is both
    /// source and destination of its frames.
    ///
    /// # Errors
    /// The system error; without `CAP_NET_RAW` it is `PermissionDenied`.
    pub fn open(device: &str, address: [u8; 6]) -> io::Result<Self> {
        let index = Netlink::open()?.index(device)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Of protocol 0 it receives nothing.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        sys::set_option(&socket, libc::SOL_PACKET, PACKET_VNET_HDR, &1i32)?;
        if sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &BUFFER).is_err() {
            // The most that an ordinary user gets.
            sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &BUFFER)?;
        }
        link_layer::bind(&socket, index, 0)?;
        Ok(PacketSender { socket, address })
    }

    /// Sends a packet: `headers` are a `virtio_net` header as of a TUN device and an IP header,
    /// and more up to where `payload` begins.
    ///
    /// # Errors
    /// The system error; the packet was not sent.
    pub fn send(&self, headers: &[u8], payload: &[u8]) -> io::Result<()> {
        let (vnet, ip) = headers
            .split_first_chunk::<VNET_HEADER>()
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let ether_type: u16 = match ip.first().map(|byte| byte >> 4) {
            Some(4) => libc::ETH_P_IP as u16,
            Some(6) => libc::ETH_P_IPV6 as u16,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let mut vnet = *vnet;
        // Header length and start of the checksum count from the Ethernet header on.
        for at in [2, 6] {
            let old = u16::from_ne_bytes([vnet[at], vnet[at + 1]]);
            let counted = at == 2 && old == 0;
            let new = if counted { 0 } else { old.saturating_add(ETHERNET_HEADER as u16) };
            vnet[at..at + 2].copy_from_slice(&new.to_ne_bytes());
        }
        let mut frame = [0; ETHERNET_HEADER];
        frame[..6].copy_from_slice(&self.address);
        frame[6..12].copy_from_slice(&self.address);
        frame[12..].copy_from_slice(&ether_type.to_be_bytes());
        let pieces = [&vnet[..], &frame, ip, payload].map(IoSlice::new);
        rustix::io::retry_on_intr(|| rustix::io::writev(&self.socket, &pieces))?;
        Ok(())
    }
}
