//! Values as bytes: integers with the lowest byte first, and everything else in the order of its fields. The
//! bits of a number stay the same.

/// A value that is carried to another process.
pub(crate) trait Carry: Sized {
    /// Appends the value.
    fn put(&self, to: &mut Vec<u8>);
    /// Takes a value from the front; `None` if the bytes are none.
    fn get(from: &mut &[u8]) -> Option<Self>;
}

/// Carries a struct by its fields. Without a field, or with one too many, it does not compile. With a rest,
/// the other fields are not carried, and come from the rest.
macro_rules! fields {
    ($type:ident { $($field:ident),* ; ..$rest:expr }) => {
        impl Carry for $type {
            fn put(&self, to: &mut Vec<u8>) {
                $(self.$field.put(to);)*
            }
            fn get(from: &mut &[u8]) -> Option<$type> {
                Some($type { $($field: Carry::get(from)?,)* ..$rest })
            }
        }
    };
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl Carry for $type {
            fn put(&self, to: &mut Vec<u8>) {
                let $type { $($field),* } = self;
                $($field.put(to);)*
            }
            fn get(from: &mut &[u8]) -> Option<$type> {
                Some($type { $($field: Carry::get(from)?),* })
            }
        }
    };
}
pub(crate) use fields;

/// Carries a type as another one.
macro_rules! carried_as {
    ($type:ty, $other:ty, $put:expr, $get:expr) => {
        impl Carry for $type {
            fn put(&self, to: &mut Vec<u8>) {
                let put: fn(&$type) -> $other = $put;
                put(self).put(to);
            }
            fn get(from: &mut &[u8]) -> Option<$type> {
                let get: fn($other) -> Option<$type> = $get;
                get(Carry::get(from)?)
            }
        }
    };
}
pub(crate) use carried_as;

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Carry for $type {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }
            fn get(from: &mut &[u8]) -> Option<$type> {
                let (bytes, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(<$type>::from_le_bytes(*bytes))
            }
        }
    )*};
}
integers!(u8, u16, u32, u64, f64);

carried_as!(bool, u8, |value| u8::from(*value), |byte| [false, true].get(usize::from(byte)).copied());

impl<T: Carry> Carry for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        self.iter().for_each(|value| value.put(to));
    }
    fn get(from: &mut &[u8]) -> Option<Option<T>> {
        Some(if bool::get(from)? { Some(T::get(from)?) } else { None })
    }
}

impl<T: Carry> Carry for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u32).put(to);
        self.iter().for_each(|value| value.put(to));
    }
    fn get(from: &mut &[u8]) -> Option<Vec<T>> {
        // Each value has at least a byte, so the request bounds the memory.
        (0..u32::get(from)?).map(|_| T::get(from)).collect()
    }
}

impl<A: Carry, B: Carry> Carry for (A, B) {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
    }
    fn get(from: &mut &[u8]) -> Option<(A, B)> {
        Some((A::get(from)?, B::get(from)?))
    }
}

impl<const N: usize> Carry for [u64; N] {
    fn put(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|value| value.put(to));
    }
    fn get(from: &mut &[u8]) -> Option<[u64; N]> {
        let mut values = [0; N];
        for value in &mut values {
            *value = u64::get(from)?;
        }
        Some(values)
    }
}

impl Carry for String {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u32).put(to);
        to.extend(self.as_bytes());
    }
    fn get(from: &mut &[u8]) -> Option<String> {
        let length = u32::get(from)?;
        let (text, rest) = from.split_at_checked(length as usize)?;
        *from = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}
