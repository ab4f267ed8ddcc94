#include "cuda/device/scalars.h"

#include <cmath>
#include <cstdint>

#include "test/support/check.h"

namespace workbench::cuda {
namespace {

// What IEEE 754 says of 16 bits.
double ValueOf(Half half) {
  const int exponent = half.bits >> 10 & 31, fraction = half.bits & 1023;
  const double value = exponent == 0 ? std::ldexp(fraction, -24)
                       : exponent == 31
                           ? (fraction == 0 ? INFINITY : NAN)
                           : std::ldexp(1024 + fraction, exponent - 25);
  return half.bits >> 15 ? -value : value;
}

TEST(EveryHalfIsReadAndWritten) {
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    const Half half = {static_cast<uint16_t>(bits)};
    const float value = ToFloat(half);
    const double expected = ValueOf(half);
    if (std::isnan(expected)) {
      CHECK(std::isnan(value));
      continue;
    }
    CHECK_EQ(static_cast<double>(value), expected);
    Half again;
    Set(value, &again);
    CHECK_EQ(again.bits, half.bits);
  }
}

TEST(HalvesAreRoundedToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const Half low = {static_cast<uint16_t>(bits)}, high = {static_cast<uint16_t>(bits + 1)};
    const float middle = static_cast<float>((ValueOf(low) + ValueOf(high)) / 2);
    Half at, above, below;
    Set(middle, &at);
    Set(std::nextafter(middle, INFINITY), &above);
    Set(std::nextafter(middle, 0.0f), &below);
    CHECK_EQ(at.bits, bits % 2 == 0 ? low.bits : high.bits);
    CHECK_EQ(above.bits, high.bits);
    CHECK_EQ(below.bits, low.bits);
  }
  Half most, beyond, none;
  Set(65519.0f, &most);
  Set(65520.0f, &beyond);
  Set(NAN, &none);
  CHECK_EQ(most.bits, 0x7bff);
  CHECK_EQ(beyond.bits, 0x7c00);
  CHECK(std::isnan(ToFloat(none)));
}

TEST(Bfloat16sAreRoundedToNearestEven) {
  const auto bits_of = [](float value) {
    Bfloat16 to;
    Set(value, &to);
    return to.bits;
  };
  CHECK_EQ(bits_of(1.0f), 0x3f80);
  CHECK_EQ(bits_of(FloatOf(0x3f808000)), 0x3f80);  // in the middle, to the even one
  CHECK_EQ(bits_of(FloatOf(0x3f818000)), 0x3f82);
  CHECK_EQ(bits_of(FloatOf(0x3f808001)), 0x3f81);
  CHECK_EQ(bits_of(FloatOf(0xff7fffff)), 0xff80);  // to minus infinity
  CHECK(std::isnan(ToFloat(Bfloat16{bits_of(FloatOf(0x7f800001))})));
  CHECK_EQ(ToFloat(Bfloat16{0xc000}), -2.0f);
}

}  // namespace
}  // namespace workbench::cuda
