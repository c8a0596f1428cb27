//! Choosing the next token.

use llguidance::toktrie::SimpleVob;

/// How freely tokens are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sampling {
    /// 0 takes the likeliest token, always.
    pub(crate) temperature: f32,
    /// Only the likeliest tokens that together have this share are in play.
    pub(crate) top_p: f32,
    /// Never more than this many tokens are in play.
    pub(crate) top_k: usize,
}

/// A chooser with its own chance: the same seed makes the same choices.
#[derive(Debug)]
pub(crate) struct Sampler {
    sampling: Sampling,
    random: fastrand::Rng,
    candidates: Vec<(f32, u32)>,
}

impl Sampler {
    pub(crate) fn new(sampling: Sampling, seed: Option<u64>) -> Self {
        Self {
            sampling,
            random: seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            candidates: Vec::new(),
        }
    }

    /// Choose among the scored tokens that are allowed. `None` when there is none.
    pub(crate) fn choose(&mut self, scores: &[f32], allowed: Option<&SimpleVob>) -> Option<u32> {
        let is_allowed = |token: u32| allowed.is_none_or(|set| set.is_allowed(token));
        let all = (0..).zip(scores).filter(|(token, score)| is_allowed(*token) && !score.is_nan());
        if self.sampling.temperature <= 0.0 {
            // The first of equals, so that ties do not depend on the order of comparison.
            let best = all.fold(None, |best: Option<(u32, f32)>, (token, score)| match best {
                Some((_, highest)) if *score <= highest => best,
                _ => Some((token, *score)),
            });
            return best.map(|(token, _)| token);
        }
        let candidates = &mut self.candidates;
        candidates.clear();
        candidates.extend(all.map(|(token, score)| (*score, token)));
        let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        let keep = self.sampling.top_k.max(1);
        if candidates.len() > keep {
            candidates.select_nth_unstable_by(keep - 1, order);
            candidates.truncate(keep);
        }
        candidates.sort_unstable_by(order);
        let highest = candidates.first()?.0;
        let mut total = 0.0;
        for (score, _) in candidates.iter_mut() {
            *score = ((*score - highest) / self.sampling.temperature).exp();
            total += *score;
        }
        let mut share = 0.0;
        let in_play = candidates.iter().take_while(|(weight, _)| {
            let before = share;
            share += weight / total;
            before < self.sampling.top_p
        });
        let in_play = in_play.count().max(1);
        candidates.truncate(in_play);
        let total: f32 = candidates.iter().map(|(weight, _)| weight).sum();
        let mut point = self.random.f32() * total;
        for (weight, token) in candidates.iter() {
            point -= weight;
            if point < 0.0 {
                return Some(*token);
            }
        }
        candidates.last().map(|(_, token)| *token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Sampling = Sampling { temperature: 1.0, top_p: 0.95, top_k: 40 };

    fn run(sampling: Sampling, seed: u64) -> Vec<Option<u32>> {
        let mut sampler = Sampler::new(sampling, Some(seed));
        let scores: Vec<f32> = (0..100).map(|n| (n as f32 * 0.7).sin() * 2.0).collect();
        (0..50).map(|_| sampler.choose(&scores, None)).collect()
    }

    #[test]
    fn the_same_seed_makes_the_same_choices() {
        assert_eq!(run(FREE, 7), run(FREE, 7));
        assert_ne!(run(FREE, 7), run(FREE, 8));
    }

    #[test]
    fn no_temperature_takes_the_first_of_the_likeliest() {
        let mut sampler = Sampler::new(Sampling { temperature: 0.0, ..FREE }, None);
        assert_eq!(sampler.choose(&[0.1, 3.0, f32::NAN, 3.0], None), Some(1));
        assert_eq!(sampler.choose(&[], None), None);
    }

    #[test]
    fn only_allowed_tokens_are_chosen() {
        let mut allowed = SimpleVob::alloc(4);
        allowed.allow_token(2);
        let mut greedy = Sampler::new(Sampling { temperature: 0.0, ..FREE }, None);
        assert_eq!(greedy.choose(&[9.0, 8.0, -5.0, 7.0], Some(&allowed)), Some(2));
        let mut free = Sampler::new(FREE, None);
        assert_eq!(free.choose(&[9.0, 8.0, -5.0, 7.0], Some(&allowed)), Some(2));
    }

    #[test]
    fn unlikely_tokens_are_out_of_play() {
        let narrow = Sampling { temperature: 1.0, top_p: 0.5, top_k: 40 };
        let mut sampler = Sampler::new(narrow, Some(1));
        for _ in 0..100 {
            assert_eq!(sampler.choose(&[5.0, 1.0, 0.0], None), Some(0));
        }
    }
}
