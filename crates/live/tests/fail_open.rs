//! Ordinary programs on both sides of a direction that has failed: datagrams of sockets, whose checksums the
//! kernel leaves to a card that is not there.

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use crate::bed::{Bed, NONE, ip, nap};
use giveway_live::Command;
use giveway_qdisc::{Rate, Span};

/// The ends of the bed become hosts: each in a namespace of its own, with an address.
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

/// A socket of a host. A thread enters its namespace for that, and the socket stays there.
fn socket(host: &str, address: &str) -> UdpSocket {
    let (place, address) = (format!("/run/netns/{host}"), address.to_owned());
    let made = thread::spawn(move || {
        let namespace = File::open(place).expect("it was just made");
        nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).expect("we are root");
        UdpSocket::bind(address).expect("the address is there")
    });
    let socket = made.join().expect("it makes a socket");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("it is no zero");
    socket
}

/// Sends so many datagrams, a few at a time, and counts those that come to the other socket.
fn cross(from: &UdpSocket, to: &UdpSocket, count: u32) -> u32 {
    let target = to.local_addr().expect("it is bound");
    let mut came = 0;
    for first in (0..count).step_by(50) {
        for number in first..first + 50 {
            from.send_to(&[number.to_be_bytes().as_slice(), &[7; 300]].concat(), target).expect("it is up");
        }
        for _ in 0..50 {
            let mut data = [0; 2000];
            let Ok(length) = to.recv(&mut data) else { return came };
            assert_eq!(length, 304);
            came += 1;
        }
    }
    came
}

/// Waits for something to become true, for at most ten seconds.
fn until(mut is_true: impl FnMut() -> bool) {
    for _ in 0..500 {
        if is_true() {
            return;
        }
        nap(Duration::from_millis(20));
    }
}

/// UDP_SEGMENT of linux/udp.h: the kernel sends what is written as one, and leaves it to the card to cut it.
fn write_as_segments_of(socket: &UdpSocket, bytes: u32) {
    const UDP_SEGMENT: libc::c_int = 103;
    let value = bytes as libc::c_int;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads an integer, which lives until the call returns.
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

/// 1,000 datagrams of ordinary sockets come to the receiver's socket, both ways, when both directions have
/// failed.
#[test]
fn datagrams_of_ordinary_sockets_arrive_when_it_has_failed() {
    let Some(bed) = Bed::build("s") else { return };
    let [here, there] = hosts(&bed);
    let bridge = bed.bridge("fifo", Rate::gbit(1), NONE());
    let (a, b) = (socket(&here, "10.99.0.1:5001"), socket(&there, "10.99.0.2:5002"));
    assert_eq!((cross(&a, &b, 100), cross(&b, &a, 100)), (100, 100), "while it shapes");
    let checksums =
        || -> Vec<u64> { bridge.handles().iter().map(|handle| handle.status().checksums).collect() };
    // What is counted is shown ten times a second.
    until(|| checksums().iter().all(|count| *count >= 100));
    let before = checksums();
    assert!(
        before.iter().all(|count| *count >= 100),
        "the senders leave checksums to their card: {before:?}"
    );
    for handle in bridge.handles() {
        handle.send(Command::Qdisc(Box::new(|_| panic!("there is no such discipline"))));
    }
    until(|| bridge.handles().iter().all(|handle| handle.status().plain.is_some()));
    // The spare threads check for a failure ten times a second.
    nap(Duration::from_secs(1));
    assert_eq!((cross(&a, &b, 1000), cross(&b, &a, 1000)), (1000, 1000), "when it only forwards");
    for (after, before) in checksums().iter().zip(before) {
        assert!(after - before >= 1000, "completed here: {after} after {before}");
    }
    // Only the frame with several datagrams is lost, and it is counted.
    let c = socket(&here, "10.99.0.1:5003");
    write_as_segments_of(&c, 1000);
    c.send_to(&[1; 4000], "10.99.0.2:5002").expect("it is up");
    nap(Duration::from_millis(200));
    assert_eq!(cross(&a, &b, 50), 50);
    let ended = bridge.stop(Span::ms(10));
    let losses = ended[0].status.losses;
    assert_eq!((losses.too_long, losses.unsent), (1, 0), "{losses:?}");
}
