#pragma once

#include "finch/pytorch/network.hpp"

namespace finch::test {

/// A network with one linear layer for 2 classes of images of 1 x 2 pixels.
inline pytorch::Network linear_network() {
    return {
        .title = "A network.",
        .layers = {nn::FlattenLayer{}, nn::LinearLayer{}},
        .input = {1, 2, 1},
        .outputs = 2,
        .mean = {0.5},
        .deviation = {0.25},
        .weights = {{"1.weight", {2, 2}, std::vector<float>{1, 2, 3, 4}}, {"1.bias", {2}, std::vector<float>{5, 6}}}};
}

}  // namespace finch::test
