#include "softgpu/exec/texture.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "softgpu/exec/half_scalar.h"

namespace softgpu {
namespace {

using Channels = std::array<float, 4>;

bool IsInteger(CUarray_format format) {
  return format != CU_AD_FORMAT_HALF && format != CU_AD_FORMAT_FLOAT;
}

// A texel's place along one dimension, by the address mode; -1: outside, where the border shows.
int64_t Place(int64_t i, int64_t size, CUaddress_mode mode) {
  switch (mode) {
    case CU_TR_ADDRESS_MODE_WRAP:
      return ((i % size) + size) % size;
    case CU_TR_ADDRESS_MODE_MIRROR: {
      const int64_t place = ((i % (2 * size)) + 2 * size) % (2 * size);
      return place < size ? place : 2 * size - 1 - place;
    }
    case CU_TR_ADDRESS_MODE_BORDER:
      return i >= 0 && i < size ? i : -1;
    default:
      return std::clamp<int64_t>(i, 0, size - 1);
  }
}

template <class T>
T Read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint32_t ReadInteger(const std::byte* at, CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
      return Read<uint8_t>(at);
    case CU_AD_FORMAT_UNSIGNED_INT16:
      return Read<uint16_t>(at);
    case CU_AD_FORMAT_SIGNED_INT8:
      return static_cast<uint32_t>(Read<int8_t>(at));
    case CU_AD_FORMAT_SIGNED_INT16:
      return static_cast<uint32_t>(Read<int16_t>(at));
    default:
      return Read<uint32_t>(at);
  }
}

float FromSrgb(float value) {
  return value <= 0.04045f ? value / 12.92f : std::pow((value + 0.055f) / 1.055f, 2.4f);
}

float ReadFloat(const std::byte* at, CUarray_format format, bool srgb) {
  switch (format) {
    case CU_AD_FORMAT_FLOAT:
      return Read<float>(at);
    case CU_AD_FORMAT_HALF:
      return exec::scalar::HalfToFloat(Read<uint16_t>(at));
    case CU_AD_FORMAT_UNSIGNED_INT8: {
      const float value = static_cast<float>(Read<uint8_t>(at)) / 255.0f;
      return srgb ? FromSrgb(value) : value;
    }
    case CU_AD_FORMAT_UNSIGNED_INT16:
      return static_cast<float>(Read<uint16_t>(at)) / 65535.0f;
    case CU_AD_FORMAT_SIGNED_INT8:
      return std::max(static_cast<float>(Read<int8_t>(at)) / 127.0f, -1.0f);
    default:
      return std::max(static_cast<float>(Read<int16_t>(at)) / 32767.0f, -1.0f);
  }
}

// A place in the texels: column, row, plane. The plane is no coordinate but in a volume.
struct Corner {
  std::array<int64_t, 3> at{};
};

class Fetch {
 public:
  Fetch(const Texture& texture, uint32_t dimensions, bool normalized)
      : texture_(texture), dimensions_(dimensions), normalized_(normalized) {}

  bool integers() const {
    return IsInteger(texture_.texels.format) &&
           (texture_.as_integer || texture_.texels.channel_bytes() == 4);
  }

  // The texel's address; null: the border.
  const std::byte* Find(const Corner& corner) const {
    const Texels& t = texture_.texels;
    const std::array<int64_t, 3> sizes{t.width, t.height, t.depth};
    std::array<int64_t, 3> place = corner.at;
    for (uint32_t k = 0; k < dimensions_; ++k) {
      place[k] = Place(corner.at[k], sizes[k], Mode(k));
      if (place[k] < 0) return nullptr;
    }
    return t.base + static_cast<uint64_t>(place[2]) * t.slice +
           static_cast<uint64_t>(place[1]) * t.pitch +
           static_cast<uint64_t>(place[0]) * t.texel_bytes();
  }

  std::array<uint32_t, 4> Raw(const Corner& corner) const {
    const std::byte* const at = Find(corner);
    const Texels& t = texture_.texels;
    if (!integers()) {
      const Channels values = Floats(corner);
      return std::bit_cast<std::array<uint32_t, 4>>(values);
    }
    std::array<uint32_t, 4> values{0, 0, 0, at != nullptr ? 1u : 0u};
    for (uint32_t c = 0; at != nullptr && c < t.channels; ++c) {
      values[c] = ReadInteger(at + c * t.channel_bytes(), t.format);
    }
    return values;
  }

  Channels Floats(const Corner& corner) const {
    const std::byte* const at = Find(corner);
    if (at == nullptr) return texture_.border;
    const Texels& t = texture_.texels;
    Channels values{0, 0, 0, 1};
    for (uint32_t c = 0; c < t.channels; ++c) {
      values[c] = ReadFloat(at + c * t.channel_bytes(), t.format, texture_.srgb && c < 3);
    }
    return values;
  }

  // The mean of the texels around `at`, weighted; fractions have 8 bits, as the CUDA guide says.
  Channels Mix(const std::array<float, 3>& at, int64_t plane) const {
    Corner low;
    low.at[2] = plane;
    std::array<float, 3> part{};
    for (uint32_t k = 0; k < dimensions_; ++k) {
      const float shifted = at[k] - 0.5f;
      low.at[k] = Floor(shifted);
      part[k] = std::floor((shifted - std::floor(shifted)) * 256.0f + 0.5f) / 256.0f;
    }
    Channels sum{};
    for (uint32_t corner = 0; corner < 1u << dimensions_; ++corner) {
      float weight = 1;
      Corner place = low;
      for (uint32_t k = 0; k < dimensions_; ++k) {
        const bool high = (corner >> k & 1) != 0;
        weight *= high ? part[k] : 1 - part[k];
        place.at[k] += high;
      }
      if (weight == 0) continue;
      const Channels values = Floats(place);
      for (int c = 0; c < 4; ++c) sum[c] += weight * values[c];
    }
    return sum;
  }

  static int64_t Floor(float value) {
    // Far outside every texture, and still a number.
    return static_cast<int64_t>(std::floor(std::clamp(std::isnan(value) ? 0 : value, -1e9f, 1e9f)));
  }

 private:
  // Wrap and mirror are for normalized coordinates alone.
  CUaddress_mode Mode(uint32_t k) const {
    const CUaddress_mode mode = texture_.address[k];
    const bool repeats = mode == CU_TR_ADDRESS_MODE_WRAP || mode == CU_TR_ADDRESS_MODE_MIRROR;
    return repeats && !normalized_ ? CU_TR_ADDRESS_MODE_CLAMP : mode;
  }

  const Texture& texture_;
  const uint32_t dimensions_;
  const bool normalized_;
};

// The face that a direction meets, and where: coordinates from 0 to 1.
uint32_t FaceOf(const std::array<float, 3>& direction, std::array<float, 3>* at) {
  const float x = direction[0], y = direction[1], z = direction[2];
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  uint32_t face;
  float s, t, most;
  if (ax >= ay && ax >= az) {
    face = x < 0;
    most = ax, s = x < 0 ? z : -z, t = -y;
  } else if (ay >= az) {
    face = 2 + (y < 0);
    most = ay, s = x, t = y < 0 ? -z : z;
  } else {
    face = 4 + (z < 0);
    most = az, s = z < 0 ? -x : x, t = -y;
  }
  *at = {(s / most + 1) / 2, (t / most + 1) / 2, 0};
  return face;
}

struct Aim {
  uint32_t dimensions = 1;
  bool normalized = false;
  int64_t plane = 0;
  std::array<float, 3> at{};  // in texels
};

Aim AimAt(const Texture& texture, TextureGeometry geometry, const TextureCoordinates& where) {
  const Texels& t = texture.texels;
  Aim aim;
  aim.normalized = texture.normalized;
  aim.at = where.at;
  const auto layer = [&](uint32_t layers) {
    return static_cast<int64_t>(std::min(where.layer, std::max(layers, 1u) - 1));
  };
  switch (geometry) {
    case TextureGeometry::k1D:
      break;
    case TextureGeometry::k1DLayered:
      aim.plane = layer(t.depth);
      break;
    case TextureGeometry::k2D:
      aim.dimensions = 2;
      break;
    case TextureGeometry::k2DLayered:
      aim.dimensions = 2;
      aim.plane = layer(t.depth);
      break;
    case TextureGeometry::k3D:
      aim.dimensions = 3;
      break;
    case TextureGeometry::kCube:
    case TextureGeometry::kCubeLayered:
      aim.dimensions = 2;
      aim.normalized = true;
      aim.plane = std::min<int64_t>(FaceOf(where.at, &aim.at), t.depth - 1);  // if it is no cube
      if (geometry == TextureGeometry::kCubeLayered) aim.plane += 6 * layer(t.depth / 6);
      break;
  }
  if (aim.normalized) {
    const std::array<uint32_t, 3> sizes{t.width, t.height, t.depth};
    for (uint32_t k = 0; k < aim.dimensions; ++k) aim.at[k] *= static_cast<float>(sizes[k]);
  }
  return aim;
}

}  // namespace

uint32_t BytesOfFormat(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

uint32_t Texels::channel_bytes() const { return BytesOfFormat(format); }

std::array<uint32_t, 4> Sample(const Texture& texture, TextureGeometry geometry,
                               const TextureCoordinates& where) {
  const Aim aim = AimAt(texture, geometry, where);
  const Fetch fetch(texture, aim.dimensions, aim.normalized);
  if (!where.integer && texture.linear && !fetch.integers()) {
    return std::bit_cast<std::array<uint32_t, 4>>(fetch.Mix(aim.at, aim.plane));
  }
  Corner corner;
  corner.at[2] = aim.plane;
  for (uint32_t k = 0; k < aim.dimensions; ++k) {
    corner.at[k] = where.integer ? where.index[k] : Fetch::Floor(aim.at[k]);
  }
  return fetch.Raw(corner);
}

std::array<uint32_t, 4> Gather(const Texture& texture, TextureGeometry geometry,
                               const TextureCoordinates& where, uint32_t component) {
  constexpr int64_t kCorners[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  const Aim aim = AimAt(texture, geometry, where);
  const Fetch fetch(texture, aim.dimensions, aim.normalized);
  std::array<uint32_t, 4> values;
  for (size_t k = 0; k < 4; ++k) {
    Corner corner;
    corner.at = {Fetch::Floor(aim.at[0] - 0.5f) + kCorners[k][0],
                 Fetch::Floor(aim.at[1] - 0.5f) + kCorners[k][1], aim.plane};
    values[k] = fetch.Raw(corner)[component];
  }
  return values;
}

}  // namespace softgpu
