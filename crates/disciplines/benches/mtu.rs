//! Cost by packet size, figure 8 of the TRR paper (Chen and Chen, about 2000): nanoseconds for the same
//! number of bytes in packets of 100 to 1,500 bytes, the eleven sizes of its table 1.
//!
//! 1,200,000 bytes of 100 reserved flows are offered and leave, one packet in for each one out, with 240,000
//! bytes queued. Criterion's throughput is in payload bytes: its inverse is the time per byte. Two rows for
//! each discipline and size:
//!
//! - `NAME/MTU`: enqueue and dequeue only. A discipline does not read the payload, so this is its cost per
//!   packet times the number of packets.
//! - `NAME in pages/MTU`: the payload is copied into a pool at arrival and out of it at departure. The
//!   pool has pages of 4,096 bytes with as many buffers as fit, as in the kernel of 1999. The rest of a page
//!   is not used, so the same number of bytes takes more memory.
//!
//! In the paper the time of FIFO is constant, and the time of TRR has its minimum at 800 bytes. This claim
//! depends on its kernel's memory, so it is measured here, not asserted. `copied` is the second row without
//! a discipline.
//!
//! `cargo bench -p giveway-disciplines --bench mtu`

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use giveway_disciplines::{Discipline, Spec, Visit};
use giveway_qdisc::hash::mix;
use giveway_qdisc::{Cx, FlowKey, LinkContext, Next, Outbox, Packet, Qdisc, Rate, Streams, Time};
use giveway_theory::pages::{PAGE, TABLE_1, packets_in_page};

const LINK: Rate = Rate::gbit(1000);
const FLOWS: u64 = 100;
/// Number of bytes queued.
const QUEUED: u32 = 240_000;
/// Number of bytes offered per iteration.
const OFFERED: u32 = 1_200_000;

/// Names and specs of the disciplines, with limits above the backlog, and with slots so wide that
/// reservations of 1 Mbit/s are within a calendar's window: 12 ms of 33.
const SPECS: [(&str, &str); 6] = [
    ("fifo", "fifo limit 10000p"),
    ("drr", "drr limit 10000p"),
    ("trr", "trr limit 10000p"),
    ("trr_sound", "trr_sound limit 10000p width 8us"),
    ("tss", "tss limit 10000p"),
    ("wfq", "wfq limit 10000p"),
];

/// Pages with buffers of one size.
struct Pages {
    memory: Vec<u8>,
    mtu: usize,
    of_a_page: usize,
    free: Vec<u32>,
}

impl Pages {
    fn new(mtu: u32, buffers: u32) -> Pages {
        let (of_a_page, _) = packets_in_page(mtu).expect("packets have bytes");
        let pages = buffers.div_ceil(of_a_page);
        Pages {
            memory: vec![1; (pages * PAGE) as usize],
            mtu: mtu as usize,
            of_a_page: of_a_page as usize,
            free: (0..buffers).collect(),
        }
    }

    #[inline]
    fn buffer(&mut self, number: u32) -> &mut [u8] {
        let number = number as usize;
        let at = number / self.of_a_page * PAGE as usize + number % self.of_a_page * self.mtu;
        &mut self.memory[at..at + self.mtu]
    }
}

/// The pool for payload, if payload is copied, and the data of a packet.
struct Payload {
    pages: Option<Pages>,
    packet: Vec<u8>,
}

impl Payload {
    fn new(mtu: u32, carried: bool) -> Payload {
        let buffers = QUEUED / mtu + 2;
        Payload { pages: carried.then(|| Pages::new(mtu, buffers)), packet: vec![7; mtu as usize] }
    }

    #[inline]
    fn put(&mut self) -> u32 {
        let Some(pages) = &mut self.pages else { return 0 };
        let buffer = pages.free.pop().expect("no more is queued than there are buffers");
        pages.buffer(buffer).copy_from_slice(black_box(&self.packet));
        buffer
    }

    #[inline]
    fn take(&mut self, buffer: u32) {
        if let Some(pages) = &mut self.pages {
            self.packet.copy_from_slice(pages.buffer(buffer));
            black_box(&self.packet);
            pages.free.push(buffer);
        }
    }
}

/// A discipline under steady traffic of packets of one size.
struct Traffic<Q> {
    qdisc: Q,
    payload: Payload,
    out: Outbox<u32>,
    now: Time,
    mtu: u32,
    serial: u64,
}

impl<Q: Qdisc<u32>> Traffic<Q> {
    #[inline]
    fn arrive(&mut self) {
        let mut pkt = Packet::new(FlowKey(mix(self.serial % FLOWS, 0x5bd1)), self.mtu, self.payload.put());
        pkt.meta.arrived = self.now;
        pkt.meta.reserved = Rate::mbit(1);
        self.serial += 1;
        self.qdisc.enqueue(pkt, &mut Cx::new(self.now, &mut self.out));
    }

    #[inline]
    fn leave(&mut self) {
        match self.qdisc.dequeue(&mut Cx::new(self.now, &mut self.out)) {
            Next::Packet(pkt) => {
                self.payload.take(pkt.payload);
                self.now += LINK.time_for(u64::from(self.mtu));
            }
            other => panic!("packets are queued and nothing is shaped: {other:?}"),
        }
    }

    fn bytes(&mut self) {
        for _ in 0..OFFERED / self.mtu {
            self.arrive();
            self.leave();
        }
        assert!(self.out.dropped.is_empty(), "the limits are above the backlog");
    }
}

/// Times one discipline with its type known.
struct Timed<'a> {
    criterion: &'a mut Criterion,
    name: &'static str,
    mtu: u32,
    carried: bool,
}

impl Visit for Timed<'_> {
    type Out = ();

    fn visit<D: Discipline>(self, config: &D) {
        let context = LinkContext::new(LINK, Streams::new(5).within("mtu"));
        let qdisc = config.build::<u32>(&context).expect("the specification is right");
        let payload = Payload::new(self.mtu, self.carried);
        let out = Outbox::default();
        let mut traffic = Traffic { qdisc, payload, out, now: Time::ms(1), mtu: self.mtu, serial: 0 };
        for _ in 0..QUEUED / self.mtu {
            traffic.arrive();
        }
        let name = if self.carried { format!("{} in pages", self.name) } else { self.name.to_owned() };
        let mut group = self.criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(u64::from(OFFERED / self.mtu * self.mtu)));
        group.bench_function(BenchmarkId::from_parameter(self.mtu), |bencher| {
            bencher.iter(|| traffic.bytes());
        });
        group.finish();
    }
}

/// The pool alone: as many buffers in use as packets are queued, and the oldest freed for each new one.
fn copied(criterion: &mut Criterion, mtu: u32) {
    let mut payload = Payload::new(mtu, true);
    let mut queued: std::collections::VecDeque<u32> = (0..QUEUED / mtu).map(|_| payload.put()).collect();
    let mut group = criterion.benchmark_group("copied");
    group.throughput(Throughput::Bytes(u64::from(OFFERED / mtu * mtu)));
    group.bench_function(BenchmarkId::from_parameter(mtu), |bencher| {
        bencher.iter(|| {
            for _ in 0..OFFERED / mtu {
                queued.push_back(payload.put());
                let oldest = queued.pop_front().expect("there are as many as before");
                payload.take(oldest);
            }
        });
    });
    group.finish();
}

fn figure_8(criterion: &mut Criterion) {
    for mtu in TABLE_1 {
        copied(criterion, mtu);
        for (name, spec) in SPECS {
            for carried in [false, true] {
                let spec: Spec = spec.parse().expect("it is written right");
                spec.with(Timed { criterion, name, mtu, carried });
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = figure_8
}
criterion_main!(benches);
