//! Cost of fragmentation: packets of 1,500 bytes are cut to 800 and to 500 bytes and joined, compared with
//! the same number of plain copies.
//!
//! A bridge that cuts copies each byte from the frame into a fragment, and a bridge that joins copies it from
//! the fragment into a frame. A bridge without fragmentation copies each frame, too, when it receives it. So
//! `copied twice` is the reference for `cut and joined`. In the TRR paper (section 5) cutting and joining
//! take 7.3 % of the time of the whole router.
//!
//! 256 frames (384 kB) are used in turn, so that neither they nor the buffers stay in the first-level cache.
//! Times are per 256 frames; the throughput is in bytes of frames.
//!
//! `cargo bench -p giveway-wire --bench fragment`

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use giveway_qdisc::Time;
use giveway_qdisc::hash::SipHasher;
use giveway_wire::fragment::{Cutter, ETHER_TYPE, Plan, Reassembly, Settings, Size, Taken};

/// Length of a packet, behind the Ethernet header, in bytes.
const BYTES: usize = 1500;
const FRAMES: usize = 256;
const BUFFER: usize = 1536;

/// Frames with IPv4 packets, all different.
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

/// Cuts a frame into consecutive buffers, writes the length of each fragment to `lengths`, and returns the
/// number of fragments.
#[inline]
fn cut(cutter: &mut Cutter, frame: &[u8], buffers: &mut [u8], lengths: &mut [usize; 8]) -> usize {
    let Plan::Cut(cut) = cutter.plan(frame) else { unreachable!("it is longer than a fragment") };
    for index in 0..cut.count() {
        lengths[index] = cut.write(frame, index, &mut buffers[index * BUFFER..][..BUFFER]);
    }
    cut.count()
}

fn fragment(criterion: &mut Criterion) {
    let frames = frames();
    let length = frames[0].len();
    let mut group = criterion.benchmark_group("fragment");
    group.throughput(Throughput::Bytes((FRAMES * length) as u64));
    let mut buffers = vec![0; (FRAMES + 8) * BUFFER];

    group.bench_function("copied", |bencher| {
        bencher.iter(|| {
            for (frame, buffer) in frames.iter().zip(buffers.chunks_mut(BUFFER)) {
                buffer[..length].copy_from_slice(black_box(frame));
            }
            black_box(&buffers);
        });
    });
    let mut second = vec![0; FRAMES * BUFFER];
    group.bench_function("copied twice", |bencher| {
        bencher.iter(|| {
            for ((frame, buffer), other) in
                frames.iter().zip(buffers.chunks_mut(BUFFER)).zip(second.chunks_mut(BUFFER))
            {
                buffer[..length].copy_from_slice(black_box(frame));
                other[..length].copy_from_slice(black_box(&buffer[..length]));
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
                    cut(&mut cutter, black_box(frame), &mut buffers[n * BUFFER..], &mut lengths);
                }
                black_box(&buffers);
            });
        });
        let mut joiner = reassembly();
        group.bench_function(BenchmarkId::new("cut and joined", size.bytes()), |bencher| {
            bencher.iter(|| {
                let mut whole = 0;
                for (n, frame) in frames.iter().enumerate() {
                    let buffers = &mut buffers[n * BUFFER..];
                    let count = cut(&mut cutter, black_box(frame), buffers, &mut lengths);
                    for (buffer, length) in buffers.chunks(BUFFER).zip(&lengths[..count]) {
                        if let Taken::Whole(frame) = joiner.take(&buffer[..*length], Time::ZERO) {
                            whole += usize::from(black_box(frame).len() == length_of_frame());
                        }
                    }
                }
                assert_eq!(whole, FRAMES, "every frame was joined");
            });
        });
    }
    group.finish();
}

/// Length of a frame: link header and packet, in bytes.
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
