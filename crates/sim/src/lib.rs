//! A discrete-event model of an application server and its visitors; drives the gate unchanged.
