//! Settings that are tables in place of constants: what varies with time, and models of loss.

use std::path::Path;

use giveway_links::{Profile, TraceError};
use giveway_qdisc::{Rate, Share, Span, Streams, Time};
use giveway_scenario::link_key;

use super::{BridgeConfig, DirectionConfig, LONGEST, canonical};
use crate::error::ControlError;

impl BridgeConfig {
    /// Takes the value of a setting over from another configuration, if that has the same text in its tables:
    /// a file is not read again. Returns true if it was taken over.
    pub(crate) fn take_over(&mut self, name: &str, value: &str, from: &BridgeConfig) -> bool {
        let name = canonical(name);
        let (setting, own, from) = match name.strip_suffix("-reverse") {
            Some(setting) => (setting, &mut self.reverse, &from.reverse),
            None => (name.as_str(), &mut self.forward, &from.forward),
        };
        let Some((key, text)) = from.tables.get_key_value(setting).filter(|(_, text)| *text == value) else {
            return false;
        };
        let (to, of) = (&mut own.emulation, &from.emulation);
        match *key {
            "rate" => {
                own.rate = from.rate;
                to.impairments.rate.clone_from(&of.impairments.rate);
            }
            "delay" => {
                to.delay = of.delay;
                to.impairments.delay.clone_from(&of.impairments.delay);
            }
            "loss" => (to.loss, to.impairments.loss) = (of.loss, of.impairments.loss),
            _ => to.impairments.reorder = of.impairments.reorder,
        }
        own.tables.insert(key, text.clone());
        true
    }

    /// Builds disciplines for the mean over this time, if the rate varies. The default is the mean of the
    /// trace.
    ///
    /// # Errors
    /// If a discipline cannot be built for that rate.
    pub fn for_time(&mut self, span: Span) -> Result<(), ControlError> {
        for (config, name) in [(&mut self.forward, "rate"), (&mut self.reverse, "rate-reverse")] {
            if let Some(profile) = &config.emulation.impairments.rate {
                config.rate = Rate::bit(profile.mean_until(Time::ZERO + span));
                config.check_built().map_err(|message| ControlError::setting(name, message))?;
            }
        }
        Ok(())
    }
}

impl DirectionConfig {
    /// Sets a table in place of a constant; the error is the message.
    pub(super) fn vary(&mut self, setting: &str, value: &str, folder: Option<&Path>) -> Result<(), String> {
        let read = link_key(setting, value, folder).map_err(|error| error.to_string())?;
        let nothing = || "nothing says how it varies".to_owned();
        let kept = |profile: Option<Profile>| {
            let profile = profile.ok_or_else(nothing)?;
            profile.in_memory().map_err(|TraceError { message, help, .. }| format!("{message}; {help}"))
        };
        let emulation = &mut self.emulation;
        let key = match setting {
            "rate" => {
                let profile = kept(read.rate)?;
                self.rate = Rate::bit(profile.mean());
                emulation.impairments.rate = Some(profile);
                "rate"
            }
            "delay" => {
                let profile = kept(read.delay)?;
                let most = Span::from_ps(profile.most());
                if most > LONGEST {
                    return Err(format!("{most} is too long: at most {LONGEST}"));
                }
                emulation.delay = Span::from_ps(profile.mean());
                emulation.impairments.delay = Some(profile);
                "delay"
            }
            "loss" => {
                let model = read.loss.ok_or_else(nothing)?;
                emulation.loss = Share::new(model.mean()).expect("the mean of shares is a share");
                emulation.impairments.loss = Some(model);
                "loss"
            }
            _ => {
                emulation.impairments.reorder = read.reorder;
                "reorder"
            }
        };
        self.tables.insert(key, value.to_owned());
        Ok(())
    }

    /// Removes the table in place of a constant.
    pub(super) fn constant(&mut self, setting: &str) {
        self.tables.remove(setting);
        let impairments = &mut self.emulation.impairments;
        match setting {
            "rate" => impairments.rate = None,
            "delay" => impairments.delay = None,
            "loss" => impairments.loss = None,
            _ => impairments.reorder = None,
        }
    }

    /// Checks that the discipline can be built at the rate; the error is the message.
    pub(super) fn check_built(&self) -> Result<(), String> {
        let context = crate::link::context(self.rate, Streams::new(0));
        let built = self.qdisc.build::<giveway_live::Frame>(&context);
        built.map(|_| ()).map_err(|invalid| invalid.to_string())
    }
}
