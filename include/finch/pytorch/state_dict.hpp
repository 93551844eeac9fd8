#pragma once

#include "finch/base/bytes.hpp"
#include "finch/base/named_array.hpp"

/// Formats of a state dict: tensors of float32 and int64 with names.
namespace finch::pytorch {

/// Returns the arrays in the format of safetensors 0.4 (https://github.com/huggingface/safetensors): the size of a JSON
/// header, the header, and the values.
[[nodiscard]] Bytes safetensors(const NamedArrays& arrays);

/// Returns the arrays as torch.save(state_dict) of PyTorch 1.6 and later writes them: a zip archive of a pickled dict
/// and the values of each tensor. torch.load(weights_only=True) reads it. Throws ConfigError if the archive would be
/// larger than 4 GiB, the limit of the zip format without extensions.
[[nodiscard]] Bytes torch_archive(const NamedArrays& arrays);

}  // namespace finch::pytorch
