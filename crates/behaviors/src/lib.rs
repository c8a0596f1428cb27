//! Behaviours for Duologue agents: generic and ReAct.
