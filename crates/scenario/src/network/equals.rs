//! Sources that are equal but for their names and nodes.

use super::model::Network;
use super::paths::Paths;
use super::traffic::Stream;

/// Maximum number of sources of which pairs are compared.
const MAX: usize = 100;

impl Network {
    /// The groups of equal sources, with two names or more in each. The connections of equal sources last.
    /// They have the same transport and the same times, cross links with the same rates and delays, and share
    /// one of them. Without phase effects, and without a discipline that prefers one, all receive as much.
    pub fn equal_sources(&self) -> Vec<Vec<&str>> {
        let paths = self.paths();
        let lasting = |stream: &&Stream| stream.spec.lasting().is_some() && stream.spec.answered();
        let mut groups: Vec<(&Stream, Vec<&str>)> = Vec::new();
        for stream in self.traffic.iter().filter(lasting).take(MAX) {
            let name = stream.name.as_str();
            match groups.iter_mut().find(|(first, _)| self.are_equal(first, stream, &paths)) {
                Some((_, names)) if names.contains(&name) => {}
                Some((_, names)) => names.push(name),
                None => groups.push((stream, vec![name])),
            }
        }
        groups.into_iter().map(|(_, names)| names).filter(|names| names.len() > 1).collect()
    }

    fn are_equal(&self, one: &Stream, other: &Stream, paths: &Paths) -> bool {
        let path = |stream: &Stream| -> Vec<usize> {
            stream.pairs.first().and_then(|(from, to)| paths.path(*from, *to)).unwrap_or_default()
        };
        let (here, there) = (path(one), path(other));
        let link = |at: &usize| (self.ports[*at].rate, self.ports[*at].delay);
        one.spec == other.spec
            && (&one.tcp, &one.quic) == (&other.tcp, &other.quic)
            && (one.class, one.dscp, one.reserved) == (other.class, other.dscp, other.reserved)
            && (one.start, one.stop, one.pairs.len()) == (other.start, other.stop, other.pairs.len())
            && here.iter().any(|at| there.contains(at))
            && here.iter().map(link).eq(there.iter().map(link))
    }
}
