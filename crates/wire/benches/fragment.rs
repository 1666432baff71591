//! What fragmentation costs: packets of 1,500 bytes cut to 800 and to 500 and joined again, against copying
//! the same bytes as often.
//!
//! A host that cuts copies each byte from the frame into a fragment, and one that joins copies it from there
//! into a frame. The host that does neither copies frames, too, on their way in: `copied` is one copy, and
//! `copied twice` what stands against `cut and joined`. The TRR paper (section 5) has 7.3 % for cutting and
//! joining, of the time of its whole router.
//!
//! 256 frames go through in turn, 384 kB, so that neither they nor the rooms are in the first cache all the
//! time. Per packet; the throughput is in bytes of frames.
//!
//! `cargo bench -p giveway-wire --bench fragment`

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use giveway_qdisc::Time;
use giveway_qdisc::hash::SipHasher;
use giveway_wire::fragment::{Cutter, ETHER_TYPE, Plan, Reassembly, Settings, Size, Taken};

/// Behind the Ethernet header.
const BYTES: usize = 1500;
const FRAMES: usize = 256;
const ROOM: usize = 1536;

/// Frames with IPv4 in them, none like another.
fn frames() -> Vec<Vec<u8>> {
    let frame = |n: usize| {
        let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0, 0x45];
        frame.extend((1..BYTES).map(|at| (at * 31 + n * 7) as u8));
        frame
    };
    (0..FRAMES).map(frame).collect()
}

fn reassembly() -> Reassembly {
    Reassembly::new(Settings::new(ETHER_TYPE, BYTES + 18), SipHasher::new(1, 2))
}

/// Cuts a frame into rooms that follow one another from `from` on; returns how long each fragment is.
#[inline]
fn cut(cutter: &mut Cutter, frame: &[u8], rooms: &mut [u8], lengths: &mut [usize; 8]) -> usize {
    let Plan::Cut(cut) = cutter.plan(frame) else { unreachable!("it is longer than a fragment") };
    for index in 0..cut.count() {
        lengths[index] = cut.write(frame, index, &mut rooms[index * ROOM..][..ROOM]);
    }
    cut.count()
}

fn fragment(criterion: &mut Criterion) {
    let frames = frames();
    let length = frames[0].len();
    let mut group = criterion.benchmark_group("fragment");
    group.throughput(Throughput::Bytes((FRAMES * length) as u64));
    let mut rooms = vec![0; (FRAMES + 8) * ROOM];

    group.bench_function("copied", |bencher| {
        bencher.iter(|| {
            for (frame, room) in frames.iter().zip(rooms.chunks_mut(ROOM)) {
                room[..length].copy_from_slice(black_box(frame));
            }
            black_box(&rooms);
        });
    });
    let mut second = vec![0; FRAMES * ROOM];
    group.bench_function("copied twice", |bencher| {
        bencher.iter(|| {
            for ((frame, room), other) in
                frames.iter().zip(rooms.chunks_mut(ROOM)).zip(second.chunks_mut(ROOM))
            {
                room[..length].copy_from_slice(black_box(frame));
                other[..length].copy_from_slice(black_box(&room[..length]));
            }
            black_box(&second);
        });
    });

    for size in Size::PUBLISHED {
        let mut cutter = Cutter::new(size, ETHER_TYPE, 0);
        let mut lengths = [0; 8];
        group.bench_function(BenchmarkId::new("cut", size.bytes()), |bencher| {
            bencher.iter(|| {
                for (n, frame) in frames.iter().enumerate() {
                    cut(&mut cutter, black_box(frame), &mut rooms[n * ROOM..], &mut lengths);
                }
                black_box(&rooms);
            });
        });
        let mut joiner = reassembly();
        group.bench_function(BenchmarkId::new("cut and joined", size.bytes()), |bencher| {
            bencher.iter(|| {
                let mut whole = 0;
                for (n, frame) in frames.iter().enumerate() {
                    let rooms = &mut rooms[n * ROOM..];
                    let count = cut(&mut cutter, black_box(frame), rooms, &mut lengths);
                    for (room, length) in rooms.chunks(ROOM).zip(&lengths[..count]) {
                        if let Taken::Whole(frame) = joiner.take(&room[..*length], Time::ZERO) {
                            whole += usize::from(black_box(frame).len() == length_of_frame());
                        }
                    }
                }
                assert_eq!(whole, FRAMES, "every frame came back");
            });
        });
    }
    group.finish();
}

/// Link header and packet.
const fn length_of_frame() -> usize {
    14 + BYTES
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(50)
        .warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(2));
    targets = fragment
}
criterion_main!(benches);
