//! Tables with sets of eight ways: a key may be at eight places, so that keys rarely share one.

/// Number of queues of a tin, and of places for its hosts.
pub const PLACES: usize = 1024;
/// Places at which a key may be.
pub const WAYS: usize = 8;

/// Number of sets.
const SETS: usize = PLACES / WAYS;

/// The flows at the places of a tin, and which places are free.
#[derive(Debug)]
pub struct Tags {
    /// Hash of the flow at each place, set by set.
    tags: Box<[[u32; WAYS]; SETS]>,
    /// The free places of each set, a bit each.
    free: Box<[u8; SETS]>,
}

impl Tags {
    /// Places that are all free.
    pub fn new() -> Tags {
        Tags { tags: Box::new([[0; WAYS]; SETS]), free: Box::new([u8::MAX; SETS]) }
    }

    /// The tag at a place, also of a flow that has left it.
    #[inline]
    pub fn at(&self, place: usize) -> u32 {
        self.tags[place / WAYS % SETS][place % WAYS]
    }

    /// The place of a tag in the set of its own place.
    #[inline]
    pub fn find(&self, own: usize, tag: u32) -> Option<usize> {
        let set = &self.tags[own / WAYS % SETS];
        // Without branches, so that the compiler compares all of them at once.
        if !set.iter().fold(false, |found, other| found | (*other == tag)) {
            return None;
        }
        ways(own).find(|place| set[place % WAYS] == tag)
    }

    /// A free place in the set of an own place.
    #[inline]
    pub fn free(&self, own: usize) -> Option<usize> {
        first(own, self.free[own / WAYS % SETS])
    }

    /// Writes a tag.
    #[inline]
    pub fn put(&mut self, place: usize, tag: u32) {
        self.tags[place / WAYS % SETS][place % WAYS] = tag;
    }

    /// A place is free.
    #[inline]
    pub fn set_free(&mut self, place: usize) {
        self.free[place / WAYS % SETS] |= 1 << (place % WAYS);
    }

    /// A place is no longer free.
    #[inline]
    pub fn set_taken(&mut self, place: usize) {
        self.free[place / WAYS % SETS] &= !(1 << (place % WAYS));
    }
}

/// The first place of a set whose bit is set, in the order of [`ways`].
#[inline]
fn first(own: usize, bits: u8) -> Option<usize> {
    let behind = bits.rotate_right((own % WAYS) as u32).trailing_zeros() as usize;
    (bits != 0).then_some(own & !(WAYS - 1) | ((own + behind) % WAYS))
}

/// The places of a key: its own place first, then the others of its set.
#[inline]
pub fn ways(own: usize) -> impl Iterator<Item = usize> {
    let set = own & !(WAYS - 1);
    (0..WAYS).map(move |way| set + ((own + way) & (WAYS - 1)))
}

/// The numbers of bulk flows of hosts, of one direction.
#[derive(Debug)]
pub struct Hosts {
    /// The host at each place.
    hosts: Box<[u16; PLACES]>,
    /// Its bulk flows; a place without any is free.
    flows: Box<[u16; PLACES]>,
    /// Number of places that are not free.
    places: u32,
}

impl Hosts {
    /// A table without hosts.
    pub fn new() -> Hosts {
        Hosts { hosts: Box::new([0; PLACES]), flows: Box::new([0; PLACES]), places: 0 }
    }

    /// Counts a further bulk flow of a host, and returns its place. If its set is full the host shares a
    /// place.
    pub fn join(&mut self, host: u16) -> u16 {
        let own = own_place(host);
        let place = self.place(host).or_else(|| ways(own).find(|way| self.flows[*way] == 0)).unwrap_or(own);
        if self.flows[place] == 0 {
            self.hosts[place] = host;
            self.places += 1;
        }
        self.flows[place] += 1;
        place as u16
    }

    /// A bulk flow at a place has ended.
    pub fn leave(&mut self, place: u16) {
        let flows = &mut self.flows[usize::from(place)];
        *flows -= 1;
        self.places -= u32::from(*flows == 0);
    }

    /// Bulk flows at a place.
    #[inline]
    pub fn at(&self, place: u16) -> u16 {
        self.flows[usize::from(place)]
    }

    /// Bulk flows of a host.
    #[inline]
    pub fn of(&self, host: u16) -> u16 {
        self.place(host).map_or(0, |place| self.flows[place])
    }

    /// True if all bulk flows are of one host.
    #[inline]
    pub fn is_single(&self) -> bool {
        self.places <= 1
    }

    #[inline]
    fn place(&self, host: u16) -> Option<usize> {
        ways(own_place(host)).find(|way| self.hosts[*way] == host && self.flows[*way] > 0)
    }
}

/// The own place of a host. Hosts are small numbers or hashes; neighbours are in different sets.
#[inline]
fn own_place(host: u16) -> usize {
    usize::from(host.wrapping_mul(0x9e3b)) >> 6
}
