// Measures training steps of the tutorial's network, of a wide network (LAYERS: wide), or of a residual network
// (LAYERS: residual or wide_residual). Reads lines "LAYERS BATCH STEPS [SLOTS]" from standard input and answers each
// line with the seconds per step. So a script can measure bench_step and another implementation in turn:
// tools/bench/step.py on one thread of a CPU, tools/bench/gpu_step.py on a GPU. SLOTS is the number of networks that
// train concurrently, for STEPS steps each. One thread launches the steps of all networks, each on its own stream. The
// answer is then the total time divided by the number of all steps. --threads is the number of threads that compute a
// step on a CPU. With --blocks no, every batch is one block. With --gangs no, each network's steps are launched alone.
#include "finch/backend/cuda.hpp"
#include "finch/backend/device.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/random.hpp"
#include "finch/nn/initialization.hpp"
#include "finch/nn/model.hpp"
#include "finch/nn/optimizer.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

namespace {

using namespace finch;

/// Random images that all networks share. The content of the images does not change the time of a step.
struct Noise {
    static constexpr std::size_t count = 4096;
    static constexpr std::int64_t most_pixels = 32 * 32 * 3;
    std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(count * most_pixels);
    std::vector<std::int32_t> labels = std::vector<std::int32_t>(count);

    Noise() {
        RandomStream random(1, Purpose::test);
        for (std::uint8_t& pixel : pixels) {
            pixel = static_cast<std::uint8_t>(random.below(256));
        }
        for (std::int32_t& label : labels) {
            label = static_cast<std::int32_t>(random.below(10));
        }
    }

    [[nodiscard]] backend::Images images(const nn::SampleShape& shape) const {
        return {.pixels = std::span(pixels).first(count * static_cast<std::size_t>(shape.size())),
                .labels = labels,
                .pixels_per_image = shape.size(),
                .mean = std::vector(static_cast<std::size_t>(shape.channels), 0.5F),
                .deviation = std::vector(static_cast<std::size_t>(shape.channels), 0.29F)};
    }
};

/// Plans conv3x3(1 → 10), then layers − 1 times conv3x3(10 → 10), each with relu, on 28 × 28; flatten; linear(7840 →
/// 10).
nn::ModelPlan tutorial(std::int64_t layers, std::int64_t batch, backend::Precision precision, backend::Blocks blocks) {
    return nn::plan_model({nn::ConvLayer{.activation = backend::Activation::relu, .repeat = layers}, nn::FlattenLayer{},
                           nn::LinearLayer{}},
                          {28, 28, 1}, 10, batch, {.precision = precision}, blocks);
}

/// Plans conv3x3 of 32, 32, 64, 64, 128 and 128 channels with relu on 32 × 32 × 3, with a 2 × 2 maximum pooling after
/// each pair; flatten; linear(2048 → 10).
nn::ModelPlan wide(std::int64_t batch, backend::Precision precision, backend::Blocks blocks) {
    nn::ModelSpec layers;
    for (const std::int64_t channels : {32, 64, 128}) {
        layers.push_back(nn::ConvLayer{.channels = channels, .activation = backend::Activation::relu, .repeat = 2});
        layers.push_back(nn::PoolLayer{});
    }
    layers.push_back(nn::FlattenLayer{});
    layers.push_back(nn::LinearLayer{});
    return nn::plan_model(layers, {32, 32, 3}, 10, batch, {.precision = precision}, blocks);
}

/// Plans a residual network like configs/gallery/cifar10_residual.yaml, with `width`, 2 · width and 4 · width channels:
/// conv3x3 and batch normalisation; two residual blocks per number of channels, each with two conv3x3 and batch
/// normalisations, the first one of more channels with a stride of 2; global average pooling; linear(4 · width → 10).
nn::ModelPlan residual(std::int64_t width, std::int64_t batch, backend::Precision precision, backend::Blocks blocks) {
    constexpr backend::Activation relu = backend::Activation::relu;
    nn::ModelSpec layers{nn::ConvLayer{.channels = width}, nn::BatchNormLayer{.activation = relu}};
    for (const std::int64_t channels : {width, 2 * width, 4 * width}) {
        for (const bool is_first : {true, false}) {
            const std::int64_t stride = is_first && channels > width ? 2 : 1;
            nn::BlockLayer block;
            block.activation = relu;
            block.layers = {nn::ConvLayer{.channels = channels, .stride = stride},
                            nn::BatchNormLayer{.activation = relu}, nn::ConvLayer{.channels = channels},
                            nn::BatchNormLayer{}};
            layers.push_back(std::move(block));
        }
    }
    layers.insert(layers.end(), {nn::GlobalAveragePoolLayer{}, nn::FlattenLayer{}, nn::LinearLayer{}});
    return nn::plan_model(layers, {32, 32, 3}, 10, batch, {.precision = precision}, blocks);
}

nn::ModelPlan plan_of(const std::string& layers, std::int64_t batch, backend::Precision precision,
                      backend::Blocks blocks) {
    if (layers == "wide") {
        return wide(batch, precision, blocks);
    }
    if (layers == "residual" || layers == "wide_residual") {
        return residual(layers == "residual" ? 16 : 32, batch, precision, blocks);
    }
    return tutorial(std::stoll(layers), batch, precision, blocks);
}

/// Returns the optimizer of configs/gallery/cifar10_residual.yaml for wide_residual, and Adadelta for all others.
backend::Optimizer optimizer_of(const std::string& layers) {
    if (layers == "wide_residual") {
        return backend::Sgd{.momentum = 0.9, .weight_decay = 1e-4, .nesterov = true};
    }
    return backend::Adadelta{};
}

/// A network that trains on its own stream.
class Net {
public:
    Net(std::unique_ptr<backend::Device> device, const nn::ModelPlan& plan, const backend::Optimizer& optimizer,
        const Noise& noise, bool scales_loss)
        : device_(std::move(device)),
          model_(*device_, plan),
          optimizer_(*device_, optimizer, plan),
          context_(device_->make_step_context(noise.images(plan.values.front().shape), plan.batch)),
          step_(device_->capture([this] { step(); }, backend::CaptureAs::graph)),
          scales_loss_(scales_loss) {
        model_.set_state(nn::initial_state(plan, 1, 1));
        if (scales_loss_) {
            context_->set_loss_scale(backend::LossScale::initial());
        }
    }

    [[nodiscard]] std::int64_t chunk() const { return std::min<std::int64_t>(context_->capacity(), 256); }
    void wait() { device_->synchronize(); }

    /// Enqueues `count` steps, at most chunk(). All earlier steps must be complete.
    void start(std::int64_t count) {
        std::vector<backend::StepScalars> steps;
        std::vector<std::int64_t> indices;
        for (std::int64_t i = 0; i < count; ++i) {
            steps.push_back(
                {.grad_scale = 1.0F / static_cast<float>(model_.plan().batch), .optimizer = optimizer_.next(0.1)});
            for (std::int64_t sample = 0; sample < model_.plan().batch; ++sample) {
                indices.push_back(next_image_++ % static_cast<std::int64_t>(Noise::count));
            }
        }
        context_->fill(indices, steps);
        step_->run(count);
    }

private:
    void step() {
        const backend::Pass pass{.step = *context_};
        device_->next_step(pass.step);
        model_.compute_grads(
            pass,
            [this](backend::StepContext& step, const float* logits, float* grad) {
                device_->softmax_cross_entropy(step, logits, 10, grad);
            },
            [](std::int64_t, std::int64_t) {});
        if (scales_loss_) {
            device_->unscale(pass.step, model_.grads().data(), model_.grads().size());
        }
        optimizer_.apply(pass.step, model_.parameters(), model_.grads());
        model_.pack();
    }

    std::unique_ptr<backend::Device> device_;
    nn::Model model_;
    nn::Optimizer optimizer_;
    std::unique_ptr<backend::StepContext> context_;
    std::unique_ptr<backend::CapturedStep> step_;
    bool scales_loss_;
    std::int64_t next_image_ = 0;
};

/// Networks that train concurrently. They have a device of their own, because a gang has members of one device only,
/// and other networks would take its places.
struct Nets {
    std::unique_ptr<backend::Device> device;
    std::vector<std::unique_ptr<Net>> nets;
};

/// Runs `steps` steps of each network, chunk by chunk: while the host fills one context, the other networks compute.
/// Returns the seconds per step. Without gangs no network waits for others.
double seconds_of(const Nets& all, std::int64_t steps, bool in_gangs) {
    const auto& nets = all.nets;
    const std::int64_t chunk = nets.front()->chunk();
    const double begin = steady_seconds();
    for (std::int64_t done = 0; done < steps; done += chunk) {
        for (const auto& net : nets) {
            net->wait();
            net->start(std::min(chunk, steps - done));
            if (!in_gangs) {
                all.device->launch_waiting_steps();
            }
        }
    }
    for (const auto& net : nets) {
        net->wait();
    }
    return (steady_seconds() - begin) / static_cast<double>(steps) / static_cast<double>(nets.size());
}

struct Options {
    std::string device = "cpu";
    int threads = 1;
    bool in_blocks = true;
    bool in_gangs = true;
    backend::CudaPath path = backend::CudaPath::automatic;
    backend::Precision precision = backend::Precision::float32;
};

template <class Value>
Value choose(const std::string& option, const std::string& word, const std::map<std::string, Value>& values) {
    const auto found = values.find(word);
    if (found != values.end()) {
        return found->second;
    }
    std::string accepted;
    for (const auto& [name, value] : values) {
        accepted += (accepted.empty() ? "" : ", ") + name;
    }
    throw ConfigError(option + ": \"" + word + "\" is none of " + accepted);
}

Options read_options(const std::vector<std::string>& words) {
    Options options;
    for (std::size_t i = 0; i < words.size(); i += 2) {
        const std::string value = i + 1 < words.size() ? words[i + 1] : "";
        if (words[i] == "--device") {
            options.device = choose<std::string>(words[i], value, {{"cpu", "cpu"}, {"cuda", "cuda"}});
        } else if (words[i] == "--threads") {
            options.threads = std::stoi(value);
        } else if (words[i] == "--blocks") {
            options.in_blocks = choose<bool>(words[i], value, {{"yes", true}, {"no", false}});
        } else if (words[i] == "--gangs") {
            options.in_gangs = choose<bool>(words[i], value, {{"yes", true}, {"no", false}});
        } else if (words[i] == "--path") {
            options.path = choose<backend::CudaPath>(words[i], value,
                                                     {{"automatic", backend::CudaPath::automatic},
                                                      {"library", backend::CudaPath::library},
                                                      {"direct", backend::CudaPath::direct}});
        } else if (words[i] == "--precision") {
            options.precision = choose<backend::Precision>(words[i], value,
                                                           {{"float32", backend::Precision::float32},
                                                            {"tf32", backend::Precision::tf32},
                                                            {"bfloat16", backend::Precision::bfloat16},
                                                            {"float16", backend::Precision::float16}});
        } else {
            throw ConfigError(
                "bench_step [--device cpu|cuda] [--threads N] [--blocks yes|no] [--gangs yes|no] "
                "[--path automatic|library|direct] [--precision float32|tf32|bfloat16|float16]; it has no \"" +
                words[i] + "\"");
        }
    }
    return options;
}

std::unique_ptr<backend::Device> open_device(const Options& options) {
    if (options.device == "cpu") {
        return backend::make_cpu_device(options.threads);
    }
    if (backend::cuda_device_count() == 0) {
        throw ConfigError("--device cuda: this process sees no CUDA device");
    }
    return backend::make_cuda_device(0, options.path);
}

/// Answers lines until the end of the input. If the memory does not suffice for a line, answers "nan" and continues.
void answer_lines(const Options& options) {
    const Noise noise;
    if (const auto device = open_device(options); !device->supports(options.precision)) {
        throw ConfigError("--precision: " + device->name() + " has none such here");
    }
    std::map<std::tuple<std::string, std::int64_t, std::int64_t>, Nets> all;
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::string layers;
        std::int64_t batch = 0;
        std::int64_t steps = 0;
        std::int64_t slots = 1;
        if (!(words >> layers >> batch >> steps) || steps < 1) {
            throw ConfigError("a line reads LAYERS BATCH STEPS [SLOTS], not \"" + line + "\"");
        }
        words >> slots;
        slots = std::max<std::int64_t>(slots, 1);
        try {
            Nets& nets = all[{layers, batch, slots}];
            if (nets.nets.empty()) {
                nets.device = open_device(options);
                const backend::Blocks blocks = options.in_blocks ? nets.device->blocks() : backend::Blocks{};
                const nn::ModelPlan plan = plan_of(layers, batch, options.precision, blocks);
                for (std::int64_t i = 0; i < slots; ++i) {
                    nets.nets.push_back(std::make_unique<Net>(nets.device->new_stream(), plan, optimizer_of(layers),
                                                              noise, options.precision == backend::Precision::float16));
                }
                const std::int64_t most =
                    std::min<std::int64_t>({nets.nets.front()->chunk(), steps, options.device == "cpu" ? 1 : 64});
                for (const int times :
                     {1, 2}) {  // the first run captures the networks' steps, the second the gangs' steps
                    seconds_of(nets, times * most, options.in_gangs);
                }
            }
            std::cout << seconds_of(nets, steps, options.in_gangs) << std::endl;
        } catch (const std::bad_alloc&) {
            all.clear();
            std::cout << "nan" << std::endl;
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        answer_lines(read_options({argv + 1, argv + argc}));
    } catch (const std::exception& error) {
        std::cerr << "bench_step: " << error.what() << std::endl;
        return 2;
    }
}
