//! Congestion control: the amount of data that may be in flight, and the rate at which it leaves. Each
//! algorithm is a file, and a line in the list below.
//!
//! A controller has no packets and no timers. It receives acknowledgements and congestion signals with their
//! times, and returns a window in bytes. Loss detection and recovery belong to the sender.
//!
//! A controller says what it needs beyond acknowledgements of new data ([`Needs`]): what a sender measures
//! for one controller costs the others nothing.

use giveway_qdisc::{Rate, Span, Time};
use giveway_spec::{About, Catalogue, Entry};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::preset::Preset;
use super::slow_start::HyStartRule;

/// An acknowledgement of new data.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Time of arrival.
    pub now: Time,
    /// Bytes newly acknowledged, cumulatively.
    pub bytes: u64,
    /// Smoothed round-trip time.
    pub rtt: Span,
    /// The round-trip time that this acknowledgement measured, if any.
    pub sample: Option<Span>,
    /// SND.UNA: everything below this sequence number is acknowledged.
    pub una: u64,
    /// SND.NXT: everything below this sequence number has been sent.
    pub next: u64,
    /// Bytes in flight before this acknowledgement.
    pub flight: u64,
    /// True if the congestion window, and not the application or the receive window, limits the sender.
    pub cwnd_limited: bool,
}

/// The phase of loss recovery that a sender is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// No segment counts as lost.
    #[default]
    Open,
    /// Fast recovery.
    Recovery,
    /// Recovery from a timeout.
    Timeout,
}

/// The report of any acknowledgement, in recovery or not. Only controllers with [`Needs::feedback`] get it.
///
/// The delivery rate follows draft-cheng-iccrg-delivery-rate-estimation: the data delivered since the packet
/// that this acknowledgement reports was sent, by the longer of the times in which they were sent and
/// acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Feedback {
    /// Time of arrival.
    pub now: Time,
    /// SND.UNA: everything below this sequence number is acknowledged.
    pub una: u64,
    /// SND.NXT: everything below this sequence number has been sent.
    pub next: u64,
    /// Bytes that this acknowledgement reports as received for the first time, cumulatively or selectively.
    pub newly_delivered: u64,
    /// Bytes of these that carried a Congestion Experienced mark, as far as the receiver tells.
    pub newly_marked: u64,
    /// Bytes that count as lost since the last acknowledgement.
    pub newly_lost: u64,
    /// Bytes delivered since the connection opened.
    pub delivered: u64,
    /// Bytes that had been delivered when the newest packet reported here was sent.
    pub prior_delivered: u64,
    /// Bytes in the network when that packet had been sent.
    pub flight_at_send: u64,
    /// Bytes lost between the transmission of that packet and now.
    pub lost_since_send: u64,
    /// Bytes delivered in `interval`; zero if the acknowledgement measured no rate.
    pub rate_bytes: u64,
    /// The time of the delivery rate.
    pub interval: Span,
    /// True if the application, and not the window, limited the sender when that packet was sent.
    pub app_limited: bool,
    /// The round-trip time that this acknowledgement measured, if any.
    pub sample: Option<Span>,
    /// Smoothed round-trip time.
    pub rtt: Span,
    /// Bytes estimated in the network after this acknowledgement (pipe).
    pub flight: u64,
    /// Bytes in the network before this acknowledgement.
    pub prior_flight: u64,
    /// Phase of loss recovery after this acknowledgement.
    pub phase: Phase,
    /// True if the congestion window limits the sender.
    pub cwnd_limited: bool,
}

impl Feedback {
    /// Delivery rate in bytes per second; zero if this acknowledgement measured none.
    pub fn rate(&self) -> f64 {
        if self.rate_bytes == 0 || self.interval.is_zero() {
            return 0.0;
        }
        self.rate_bytes as f64 / self.interval.as_s()
    }
}

/// The marks that an acknowledgement reports. Only controllers with [`Needs::marks`] get them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    /// Time of arrival.
    pub now: Time,
    /// Bytes newly acknowledged, cumulatively.
    pub acked: u64,
    /// Bytes that the receiver reports as marked since the last acknowledgement.
    pub marked: u64,
    /// SND.UNA: everything below this sequence number is acknowledged.
    pub una: u64,
    /// SND.NXT: everything below this sequence number has been sent.
    pub next: u64,
    /// Smoothed round-trip time.
    pub rtt: Span,
}

/// A sign of congestion: a loss, a mark, or a timeout.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loss {
    /// Time at which the sender noticed it.
    pub now: Time,
    /// Bytes in flight, at most the window.
    pub flight: u64,
    /// SND.NXT: everything below this sequence number has been sent.
    pub next: u64,
}

/// The needs of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// [`Controller::on_feedback`] for every acknowledgement, with delivery rates.
    pub feedback: bool,
    /// [`Controller::on_mark_counts`] for every acknowledgement.
    pub marks: bool,
    /// Segments leave at [`Controller::pacing_rate`], whatever the configuration says.
    pub pacing: bool,
    /// The controller sets the window in recovery itself. Otherwise the sender does: proportional rate
    /// reduction.
    pub own_recovery: bool,
    /// The controller answers marks in [`Controller::on_mark_counts`]; [`Controller::on_mark`] is not called.
    pub own_marks: bool,
    /// Packets carry ECT(1): RFC 9331, section 4.1.
    pub ect1: bool,
    /// The longest burst of a pacer, at its rate; zero for no limit.
    pub most_burst: Span,
}

/// A congestion control algorithm.
pub trait Controller {
    /// Its needs beyond acknowledgements of new data. Read once, when the sender starts.
    fn needs(&self) -> Needs {
        Needs::default()
    }
    /// New data was acknowledged outside of recovery.
    fn on_ack(&mut self, ack: &Ack);
    /// An acknowledgement arrived, in recovery or not: before [`on_mark`](Controller::on_mark). Only if it
    /// needs [`marks`](Needs::marks).
    fn on_mark_counts(&mut self, _marks: &Marks) {}
    /// An acknowledgement arrived, in recovery or not: after [`on_ack`](Controller::on_ack). Only if it needs
    /// [`feedback`](Needs::feedback).
    fn on_feedback(&mut self, _feedback: &Feedback) {}
    /// Acknowledgements indicate a loss; called at most once per window.
    fn on_loss(&mut self, loss: &Loss);
    /// The peer echoed a Congestion Experienced mark; called at most once per window.
    fn on_mark(&mut self, loss: &Loss) {
        self.on_loss(loss);
    }
    /// The retransmission timer expired. `first` is false if it expired before for the same data.
    fn on_timeout(&mut self, loss: &Loss, first: bool);
    /// The last reduction answered a loss that was none: the window and the threshold, in bytes, had these
    /// values before it.
    fn on_undo(&mut self, _window: u64, _threshold: u64, _now: Time) {}
    /// The sender was idle for longer than one retransmission timeout: RFC 5681, section 4.1.
    fn on_idle(&mut self, now: Time);
    /// The application has not filled the window: it falls to `window` bytes if it is larger, and the
    /// threshold rises to `threshold` if it is lower. A controller that measures the path has no use for
    /// that.
    fn on_unused(&mut self, _window: u64, _threshold: u64) {}
    /// A segment is about to leave, and nothing is in the network because the application had no packets to
    /// send. Only if it needs [`feedback`](Needs::feedback).
    fn on_resume(&mut self, _now: Time) {}
    /// True if the controller keeps the data in flight small to measure the path: delivery rates then count
    /// as limited by the application.
    fn limits_itself(&self) -> bool {
        false
    }
    /// Congestion window, bytes.
    fn window(&self) -> u64;
    /// Slow-start threshold, bytes; `u64::MAX` before the first loss.
    fn threshold(&self) -> u64;
    /// The rate at which segments leave; `None` for the sender's, which follows the window and the round-trip
    /// time.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}

/// The parameters of a new controller.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The preset of the connection, for parameters of a controller that differ in Linux.
    pub preset: Preset,
    /// Segment size, bytes.
    pub mss: u64,
    /// Initial window, bytes.
    pub initial_window: u64,
    /// The quantity that makes the window grow.
    pub counting: Counting,
    /// The rule that ends the first slow start.
    pub hystart: HyStartRule,
    /// The minimum growth of CUBIC's window while no plateau is known, percent per round-trip time.
    pub cubic_probe: u32,
    /// A number that differs between connections and is the same in every run: for draws of a controller.
    pub seed: u64,
}

/// The quantity that makes the window grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Counting {
    /// Bytes acknowledged, at most two segments per acknowledgement in slow start (RFC 3465, L = 2).
    Bytes,
    /// Bytes acknowledged, without a limit for an acknowledgement, as Linux counts them.
    All,
    /// Acknowledgements, one segment each in slow start.
    Acks,
}

/// The configuration of a congestion control algorithm, from which a controller is built. Every file has one,
/// named `Config`.
pub trait Control: Copy + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// Description in one line, for `giveway list`.
    const SUMMARY: &'static str;
    /// Keys of `[tcp]` that have other values with this algorithm if the scenario does not set them.
    const IMPLIES: &'static [(&'static str, bool)] = &[];

    /// The receiver echoes marks as RFC 8257, section 3.2 has it, unless ECN is accurate.
    const ECHOES_PRECISELY: bool = false;

    /// Checks that every parameter is in range.
    ///
    /// # Errors
    /// The first parameter that is out of range, and a value to write instead.
    fn check(&self) -> Result<(), giveway_qdisc::Invalid> {
        Ok(())
    }
    /// A controller for a new connection.
    fn build(&self, start: Start) -> Box<dyn Controller>;
}

macro_rules! controllers {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        giveway_spec::named_enum! {
            /// A congestion control algorithm with its parameters.
            pub enum Congestion {
                $($name($name::Config)),*
            }
        }

        impl Congestion {
            /// A controller for a new connection.
            pub fn build(&self, start: Start) -> Box<dyn Controller> {
                match self {
                    $(Congestion::$name(config) => config.build(start)),*
                }
            }
            /// Keys of `[tcp]` that have other values with this algorithm if the scenario does not set them.
            pub fn implies(&self) -> &'static [(&'static str, bool)] {
                match self {
                    $(Congestion::$name(_) => <$name::Config as Control>::IMPLIES),*
                }
            }
            /// True for a scalable control, which finds its rate by marks.
            pub fn needs_marks(&self) -> bool {
                self.implies().contains(&("ecn", true))
            }
            /// True if its receiver echoes marks as RFC 8257, section 3.2 has it.
            #[inline]
            pub fn echoes_precisely(&self) -> bool {
                match self {
                    $(Congestion::$name(_) => <$name::Config as Control>::ECHOES_PRECISELY),*
                }
            }
            /// Checks that every parameter is in range.
            ///
            /// # Errors
            /// The first parameter that is out of range, and a value to write instead.
            pub fn check(&self) -> Result<(), giveway_qdisc::Invalid> {
                match self {
                    $(Congestion::$name(config) => config.check()),*
                }
            }
        }

        /// Every congestion control algorithm.
        pub static CONTROLLERS: &[Entry<Congestion>] = &[$(Entry::of::<$name::Config>(
            stringify!($name),
            <$name::Config as Control>::SUMMARY,
            giveway_spec::header!(include_str!(concat!("controller/", stringify!($name), ".rs"))),
        )),*];
    };
}

controllers! {
    reno,
    cubic,
    bbr,
    dctcp,
    prague,
    vegas,
    copa,
    ledbat,
}

static CATALOGUE: Catalogue<Congestion> = Catalogue::new(
    About {
        noun: "congestion control",
        definition: "Congestion",
        description: "A congestion control of TCP with its parameters: \"bbr version 1\"",
        example: "cubic",
        inside: None,
    },
    CONTROLLERS,
);
giveway_spec::spec_type!(Congestion, CATALOGUE);

impl Congestion {
    /// The algorithm of a name, with its default parameters.
    ///
    /// # Panics
    /// If no algorithm has this name.
    pub fn named(name: &str) -> Congestion {
        name.parse().unwrap_or_else(|error| panic!("{error}"))
    }
}
