//! Ordinary programs on both sides of a bridge that has failed: they send datagrams over sockets, and the
//! kernel leaves the checksums to a network card, which a virtual interface does not have.

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use crate::bed::{Bed, NONE, ip, nap};
use giveway_live::Command;
use giveway_qdisc::{Rate, Span};

/// Moves the outer interfaces of the bed into two namespaces, and gives them addresses.
fn hosts(bed: &Bed) -> [String; 2] {
    // The bed removes namespaces of these names.
    [("a0", "a0", "10.99.0.1/24"), ("b1", "b0", "10.99.0.2/24")].map(|(end, host, address)| {
        let (name, host) = (bed.name(end), bed.name(host));
        ip(&["netns", "add", &host]);
        ip(&["link", "set", &name, "netns", &host]);
        ip(&["-n", &host, "address", "add", address, "dev", &name]);
        ip(&["-n", &host, "link", "set", &name, "up"]);
        host
    })
}

/// A socket of a host. A thread enters the namespace of the host to create it, and the socket stays there.
fn socket(host: &str, address: &str) -> UdpSocket {
    let (path, address) = (format!("/run/netns/{host}"), address.to_owned());
    let created = thread::spawn(move || {
        let namespace = File::open(path).expect("the namespace was just created");
        nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET)
            .expect("root may enter a namespace");
        UdpSocket::bind(address).expect("the host has this address")
    });
    let socket = created.join().expect("the socket can be created");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("the timeout is not zero");
    socket
}

/// Sends `count` datagrams in bursts of 50. Returns the number that arrive at the other socket.
fn cross(from: &UdpSocket, to: &UdpSocket, count: u32) -> u32 {
    let target = to.local_addr().expect("the socket is bound");
    let mut arrived = 0;
    for first in (0..count).step_by(50) {
        for number in first..first + 50 {
            from.send_to(&[number.to_be_bytes().as_slice(), &[7; 300]].concat(), target)
                .expect("the interface is up");
        }
        for _ in 0..50 {
            let mut data = [0; 2000];
            let Ok(length) = to.recv(&mut data) else { return arrived };
            assert_eq!(length, 304);
            arrived += 1;
        }
    }
    arrived
}

/// Waits until a condition is true, for at most ten seconds.
fn until(mut is_true: impl FnMut() -> bool) {
    for _ in 0..500 {
        if is_true() {
            return;
        }
        nap(Duration::from_millis(20));
    }
}

/// Sets UDP_SEGMENT (linux/udp.h): the kernel sends the data of a call as one packet, which a network card
/// divides into datagrams of this length.
fn write_as_segments_of(socket: &UdpSocket, bytes: u32) {
    const UDP_SEGMENT: libc::c_int = 103;
    let value = bytes as libc::c_int;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes, the size of the integer, which lives until the call returns.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            UDP_SEGMENT,
            std::ptr::from_ref(&value).cast(),
            length,
        )
    };
    assert_eq!(set, 0, "the kernel knows UDP_SEGMENT since 4.18");
}

/// 1,000 datagrams of ordinary sockets arrive in each direction after both directions have failed.
#[test]
fn datagrams_of_ordinary_sockets_arrive_after_a_failure() {
    let Some(bed) = Bed::build("s") else { return };
    let [here, there] = hosts(&bed);
    let bridge = bed.bridge("fifo", Rate::gbit(1), NONE());
    let (a, b) = (socket(&here, "10.99.0.1:5001"), socket(&there, "10.99.0.2:5002"));
    assert_eq!((cross(&a, &b, 100), cross(&b, &a, 100)), (100, 100), "while the bridge shapes");
    let checksums =
        || -> Vec<u64> { bridge.handles().iter().map(|handle| handle.status().checksums).collect() };
    // Snapshots of the counters are taken ten times a second.
    until(|| checksums().iter().all(|count| *count >= 100));
    let before = checksums();
    assert!(
        before.iter().all(|count| *count >= 100),
        "the senders leave checksums to their card: {before:?}"
    );
    for handle in bridge.handles() {
        handle.send(Command::Qdisc(Box::new(|_| panic!("unknown discipline"))));
    }
    until(|| bridge.handles().iter().all(|handle| handle.status().plain.is_some()));
    // The spare threads check for a failure ten times a second.
    nap(Duration::from_secs(1));
    assert_eq!((cross(&a, &b, 1000), cross(&b, &a, 1000)), (1000, 1000), "while the bridge only forwards");
    until(|| checksums().iter().zip(&before).all(|(after, before)| after - before >= 1000));
    for (after, before) in checksums().iter().zip(before) {
        assert!(after - before >= 1000, "plain forwarding completes checksums: {after} after {before}");
    }
    // Only the frame with several datagrams is lost, and it is counted.
    let c = socket(&here, "10.99.0.1:5003");
    write_as_segments_of(&c, 1000);
    c.send_to(&[1; 4000], "10.99.0.2:5002").expect("the interface is up");
    nap(Duration::from_millis(200));
    assert_eq!(cross(&a, &b, 50), 50);
    let ended = bridge.stop(Span::ms(10));
    let losses = ended[0].status.losses;
    assert_eq!((losses.too_long, losses.unsent), (1, 0), "{losses:?}");
}
