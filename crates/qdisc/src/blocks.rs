//! Mechanisms that several disciplines share, each under its own name and with its own tests.

pub mod codel;
mod dense_fifo;
mod flow_map;
mod levels;
mod longest_queue;
mod lookahead;
mod ranked;
mod ranked_packets;
mod recent_flows;
pub mod red;
mod token_bucket;
mod weights;

pub use dense_fifo::DenseFifo;
pub use flow_map::FlowMap;
pub use levels::{Level, Levels, TwoLevel};
pub use longest_queue::{LongestQueue, Rank};
pub use lookahead::{Head, Lookahead};
pub use ranked::Ranked;
pub use ranked_packets::RankedPackets;
pub use recent_flows::{Memory, RecentFlows};
pub use token_bucket::TokenBucket;
pub use weights::Weights;
