//! Compressed files: gzip, zstd and lz4, recognised by their first bytes.
//!
//! A damaged stream yields everything before the damage, then one error.

use std::io::{self, BufReader, Cursor, Error, ErrorKind, Read};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Bytes that are looked at to recognise a format. An ETL file has its mark at byte 72.
pub(crate) const HEAD: usize = 80;

/// Largest window of a zstd frame, bytes: the limit of the program zstd without `--long`.
const LARGEST_WINDOW: u64 = 128 << 20;

/// A compression that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
    /// The frame format of lz4, and its older one.
    Lz4,
}

impl Compression {
    /// The compression of a file that starts with `head`.
    pub(crate) fn of(head: &[u8]) -> Option<Compression> {
        match head {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            // pzstd begins with a skippable frame, which has the number of bytes of the next one.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
            [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => Some(Compression::Lz4),
            _ => None,
        }
    }

    fn decoder(self, input: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        match self {
            Compression::Gzip => Box::new(MultiGzDecoder::new(input)),
            Compression::Zstd => Box::new(Zstd::new(input)),
            Compression::Lz4 => Box::new(Lz4::new(input)),
        }
    }
}

/// An input with a copy of its first bytes, at most [`HEAD`].
type Headed = (Box<dyn Read + Send>, Vec<u8>);

/// The uncompressed bytes of an input, and a copy of the first ones.
pub(crate) fn uncompressed(input: Box<dyn Read + Send>) -> io::Result<Headed> {
    let (input, head) = with_head(input)?;
    let Some(compression) = Compression::of(&head) else { return Ok((buffered(input), head)) };
    let (input, head) = with_head(compression.decoder(buffered(input)))?;
    Ok((buffered(input), head))
}

fn buffered(input: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
    Box::new(BufReader::with_capacity(1 << 16, input))
}

/// Reads the first bytes, and puts them in front of the input again.
fn with_head(mut input: Box<dyn Read + Send>) -> io::Result<Headed> {
    let mut head = vec![0; HEAD];
    let got = read_up_to(&mut input, &mut head);
    head.truncate(got?);
    Ok((Box::new(Cursor::new(head.clone()).chain(input)), head))
}

/// Frames of zstd, one after the other.
struct Zstd<R> {
    input: R,
    decoder: FrameDecoder,
    damage: Option<Error>,
    over: bool,
}

/// A block that ends a frame: it is the last one, and has no bytes. A checksum may follow.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl<R: Read> Zstd<R> {
    fn new(input: R) -> Zstd<R> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(LARGEST_WINDOW);
        Zstd { input, decoder, damage: None, over: false }
    }

    /// Starts the next frame. Returns false at the end of the input.
    fn begin(&mut self) -> io::Result<bool> {
        let mut magic = [0; 4];
        match read_up_to(&mut self.input, &mut magic)? {
            0 => return Ok(false),
            4 => {}
            _ => return Err(ErrorKind::UnexpectedEof.into()),
        }
        match self.decoder.init(magic.as_slice().chain(&mut self.input)) {
            Ok(()) => Ok(true),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let length = u64::from(length);
                let skipped = io::copy(&mut (&mut self.input).take(length), &mut io::sink())?;
                if skipped < length { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(true) }
            }
            Err(error) => Err(Error::other(error)),
        }
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.decoder.can_collect() > 0 || buffer.is_empty() {
                return self.decoder.read(buffer);
            }
            if let Some(damage) = self.damage.take() {
                return Err(damage);
            }
            if self.over {
                return Ok(0);
            }
            if self.decoder.is_finished() {
                self.over = !self.begin().inspect_err(|_| self.over = true)?;
            } else if let Err(error) =
                self.decoder.decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1))
            {
                // The decoder keeps back a window of bytes until its frame ends. So the frame is ended.
                self.damage = Some(Error::other(error));
                self.over = true;
                let _ = self.decoder.decode_blocks(&LAST_BLOCK[..], BlockDecodingStrategy::All);
            }
        }
    }
}

/// Frames of lz4, one after the other.
struct Lz4<R: Read> {
    decoder: lz4_flex::frame::FrameDecoder<Counted<R>>,
    /// Bytes of the input at the end of the frame before.
    frame_end: u64,
}

/// An input whose bytes are counted.
struct Counted<R> {
    input: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read(buffer)?;
        self.bytes += got as u64;
        Ok(got)
    }
}

impl<R: Read> Lz4<R> {
    fn new(input: R) -> Lz4<R> {
        Lz4 { decoder: lz4_flex::frame::FrameDecoder::new(Counted { input, bytes: 0 }), frame_end: 0 }
    }
}

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let got = self.decoder.read(buffer)?;
            let bytes = self.decoder.get_ref().bytes;
            // The decoder reports the end of each frame as the end of the file.
            if got > 0 || buffer.is_empty() || bytes == self.frame_end {
                return Ok(got);
            }
            self.frame_end = bytes;
        }
    }
}

/// Reads until the buffer is full or the input ends.
pub(crate) fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match input.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
