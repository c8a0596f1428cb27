//! Half-precision numbers, as bits.

/// The number that 16 bits stand for.
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    if magnitude >= 0x7c00 {
        // Infinities and not-a-numbers keep their kind.
        return f32::from_bits(sign | 0x7f80_0000 | (magnitude & 0x3ff) << 13);
    }
    // Shifted into place, the exponent is 112 too small; the product mends that, and also makes
    // subnormal numbers right.
    let scaled = f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000);
    f32::from_bits(sign | scaled.to_bits())
}

/// The nearest 16 bits to a number; what is too large becomes infinite.
pub(crate) fn f32_to_f16(number: f32) -> u16 {
    let bits = number.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00;
    }
    if magnitude >= 0x4780_0000 {
        return sign | 0x7c00;
    }
    if magnitude < 0x3880_0000 {
        // Subnormal: adding a half lets the processor round at the right place.
        let rounded = f32::from_bits(magnitude) + 0.5;
        return sign | (rounded.to_bits() - 0x3f00_0000) as u16;
    }
    // To the nearest, ties to even.
    let rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    sign | ((rounded - 0x3800_0000) >> 13) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_way_there_and_back() {
        for bits in 0..=u16::MAX {
            let number = f16_to_f32(bits);
            if number.is_nan() {
                assert!(f16_to_f32(f32_to_f16(number)).is_nan());
            } else {
                assert_eq!(f32_to_f16(number), bits, "{number}");
            }
        }
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest_half() {
        assert_eq!(f16_to_f32(f32_to_f16(1.0 + 1.0 / 2048.0)), 1.0);
        assert_eq!(f16_to_f32(f32_to_f16(1.0 + 3.0 / 2048.0)), 1.0 + 2.0 / 1024.0);
        assert_eq!(f16_to_f32(f32_to_f16(65_520.0)), f32::INFINITY);
        assert_eq!(f16_to_f32(f32_to_f16(1e-9)), 0.0);
    }
}
