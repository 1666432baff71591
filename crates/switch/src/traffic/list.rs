//! A list of packets, to follow a small case by hand.
//!
//! Cells arrive one after the other, one per slot. A packet whose link is still busy with another one starts
//! when that has ended.

use giveway_qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrival, Source, Traffic, TrafficContext, TrafficSources};
use crate::packet::{Class, MixPart, PacketKind, Sizes};

/// A list of packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The packets.
    pub packets: Vec<Listed>,
}

/// A packet of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Slot of its first cell, counted from 0.
    pub slot: u64,
    /// Input, counted from 0.
    pub from: u16,
    /// Output, counted from 0.
    pub to: u16,
    /// Size, in cells.
    pub cells: u32,
    /// Class. Default: packets of one cell are short.
    #[serde(default)]
    pub class: Option<Class>,
}

impl Traffic for Config {
    const SUMMARY: &'static str = "packets written one by one, to follow a small case by hand";

    fn build(&self, context: &TrafficContext) -> Result<TrafficSources, Invalid> {
        let mut kinds: Vec<PacketKind> = Vec::new();
        let mut arrivals: Vec<Vec<Arrival>> = vec![Vec::new(); context.ports];
        let mut sorted: Vec<&Listed> = self.packets.iter().collect();
        sorted.sort_by_key(|packet| packet.slot);
        for packet in sorted {
            if let Some(port) =
                [packet.from, packet.to].iter().find(|port| usize::from(**port) >= context.ports)
            {
                let message = format!("port {port} does not exist: write 0 to {}", context.ports - 1);
                return Err(Invalid::new("packets", message));
            }
            let part = MixPart { cells: packet.cells, share: 1.0, class: packet.class };
            let parts = Sizes::Mix(vec![part]).parts();
            let (kind, _) = parts.map_err(|invalid| Invalid::new("packets", invalid.message))?[0];
            let number = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            });
            let before = &mut arrivals[usize::from(packet.from)];
            let free =
                before.last().map_or(0, |last| last.first + u64::from(kinds[usize::from(last.kind)].cells));
            before.push(Arrival { first: packet.slot.max(free), to: packet.to, kind: number as u16 });
        }
        let source = |arrivals: Vec<Arrival>| -> Box<dyn Source> { Box::new(List(arrivals.into_iter())) };
        let sources = arrivals.into_iter().map(source).collect();
        Ok(TrafficSources { kinds, serial: true, sources, rates: None })
    }
}

struct List(std::vec::IntoIter<Arrival>);

impl Source for List {
    fn next(&mut self) -> Option<Arrival> {
        self.0.next()
    }
}
