//! Models for Duologue: providers behind an API, scripted ones, recorders and replays.
