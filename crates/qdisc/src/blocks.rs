//! Mechanisms that several disciplines share, each under its own name and with its own tests.

mod averaging;
mod buffer;
pub mod codel;
mod dense_fifo;
mod edge;
mod flow_map;
mod levels;
mod longest_queue;
mod lookahead;
pub mod pip;
mod ranked;
mod ranked_packets;
mod recent_flows;
pub mod red;
mod token_bucket;
mod weights;

pub use averaging::{AveragedRate, Averaging, SameInstant, Step};
pub use buffer::Buffer;
pub use dense_fifo::DenseFifo;
pub use edge::Edge;
pub use flow_map::FlowMap;
pub use levels::{Level, Levels, TwoLevel};
pub use longest_queue::{LongestQueue, Rank};
pub use lookahead::{Head, Lookahead};
pub use ranked::Ranked;
pub use ranked_packets::RankedPackets;
pub use recent_flows::{Memory, RecentFlows};
pub use token_bucket::TokenBucket;
pub use weights::Weights;
