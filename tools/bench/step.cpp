// One training step of the tutorial's network on one thread. Reads lines "LAYERS BATCH STEPS" from standard input and
// answers each with the seconds of one step, so that a script can interleave it with another implementation
// (tools/bench/step.py).
#include "finch/backend/device.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/random.hpp"
#include "finch/nn/initialization.hpp"
#include "finch/nn/model.hpp"
#include "finch/nn/optimizer.hpp"

#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <vector>

namespace {

using namespace finch;

/// conv3x3(1 → 10), then layers − 1 times conv3x3(10 → 10), each with relu, on 28 × 28; flatten; linear(7840 → 10).
class TutorialNet {
public:
    TutorialNet(backend::Device& device, std::int64_t layers, std::int64_t batch)
        : device_(device),
          model_(device, nn::plan_model({nn::ConvLayer{.activation = backend::Activation::relu, .repeat = layers},
                                         nn::FlattenLayer{}, nn::LinearLayer{}},
                                        {28, 28, 1}, 10, batch)),
          optimizer_(device, nn::AdadeltaOptions{}, model_.plan().parameters),
          labels_(static_cast<std::size_t>(batch)),
          weights_(static_cast<std::size_t>(batch), 1.0F) {
        std::vector<float> first(model_.parameters().size());
        nn::initialize(model_.plan(), 1, 1, first);
        device_.upload(first, model_.parameters().data());
        model_.pack();
        RandomStream random(1, Purpose::test);
        for (std::int32_t& label : labels_) {
            label = static_cast<std::int32_t>(random.below(10));
        }
        for (std::int64_t i = 0; i < batch * 28 * 28; ++i) {
            model_.input()[i] = static_cast<float>(random.normal());
        }
    }

    void step() {
        backend::LossSums sums;
        model_.forward();
        device_.softmax_cross_entropy(model_.logits(), labels_, weights_, 10, 1.0F / static_cast<float>(labels_.size()),
                                      model_.grad_logits(), sums);
        model_.backward([](std::int64_t, std::int64_t) {});
        optimizer_.step(model_.parameters(), model_.grads(), 0.1);
        model_.pack();
    }

private:
    backend::Device& device_;
    nn::Model model_;
    nn::Optimizer optimizer_;
    std::vector<std::int32_t> labels_;
    std::vector<float> weights_;
};

}  // namespace

int main() {
    const auto device = backend::make_cpu_device(1);
    std::map<std::pair<std::int64_t, std::int64_t>, std::unique_ptr<TutorialNet>> nets;
    std::int64_t layers = 0;
    std::int64_t batch = 0;
    int steps = 0;
    while (std::cin >> layers >> batch >> steps) {
        auto& net = nets[{layers, batch}];
        if (!net) {
            net = std::make_unique<TutorialNet>(*device, layers, batch);
            net->step();
        }
        const double begin = steady_seconds();
        for (int i = 0; i < steps; ++i) {
            net->step();
        }
        std::cout << (steady_seconds() - begin) / steps << std::endl;
    }
}
