//! A discipline that takes over from one of the same type, with other parameters.

use giveway_qdisc::Qdisc;

/// The replaced discipline, if it has the type `Q`.
pub(crate) fn same<P: 'static, Q: 'static>(old: &mut dyn Qdisc<P>) -> Option<&mut Q> {
    old.as_any_mut()?.downcast_mut()
}
