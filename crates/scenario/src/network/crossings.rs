//! The traffic at each port.

use super::paths::Paths;
use super::traffic::Stream;

/// The data or the acknowledgements of a stream at a port that they cross.
pub(crate) struct Crossing<'a> {
    /// The stream.
    pub stream: &'a Stream,
    /// True for data, false for acknowledgements.
    pub data: bool,
    /// The number of pairs of nodes whose packets cross the port.
    pub pairs: u64,
}

/// The traffic at each of `ports` ports, in the order of `streams`; the data of a stream come before its
/// acknowledgements.
pub(crate) fn crossings<'a>(
    streams: impl Iterator<Item = &'a Stream>,
    ports: usize,
    paths: &Paths,
) -> Vec<Vec<Crossing<'a>>> {
    let mut crossings: Vec<Vec<Crossing<'a>>> = (0..ports).map(|_| Vec::new()).collect();
    for stream in streams {
        for data in [true, false] {
            if !data && !stream.spec.answered() {
                continue;
            }
            for (from, to) in &stream.pairs {
                let path = if data { paths.path(*from, *to) } else { paths.path(*to, *from) };
                for port in path.unwrap_or_default() {
                    match crossings[port].last_mut() {
                        Some(last) if std::ptr::eq(last.stream, stream) && last.data == data => {
                            last.pairs += 1;
                        }
                        _ => crossings[port].push(Crossing { stream, data, pairs: 1 }),
                    }
                }
            }
        }
    }
    crossings
}
