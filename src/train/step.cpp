#include "step.hpp"

#include "measurement.hpp"

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace finch::train {

Learner::Learner(backend::Device& device, comm::AllReduce& all_reduce, nn::ModelPlan plan,
                 const nn::OptimizerOptions& optimizer, const data::Dataset& dataset,
                 const data::Options& normalisation)
    : device_(device),
      all_reduce_(all_reduce),
      model_(device, std::move(plan)),
      optimizer_(device, optimizer, model_.plan().parameters),
      samples_(device, dataset, normalisation, model_.plan().batch),
      buckets_(model_.plan()) {}

std::vector<float> Learner::weights() const {
    std::vector<float> weights(static_cast<std::size_t>(model_.plan().parameters));
    device_.download(model_.parameters().data(), weights);
    return weights;
}

void Learner::set_weights(std::span<const float> weights) {
    device_.upload(weights, model_.parameters().data());
    model_.pack();
}

void Learner::train(std::span<const std::int64_t> indices, std::int64_t batch_samples, double learning_rate,
                    backend::LossSums& sums) {
    const auto grad_scale = static_cast<float>(1.0 / static_cast<double>(batch_samples));
    attempt(sums, [&] { compute_grads(indices, grad_scale, sums); });
    const std::span<const Bucket> rest = buckets_.rest();
    if (failure_) {
        zero_grads(rest);
    }
    reduce(rest);
    all_reduce_.wait();
    attempt(sums, [&] {
        optimizer_.step(model_.parameters(), model_.grads(), learning_rate);
        model_.pack();
    });
}

void Learner::validate(std::span<const std::int64_t> indices, backend::LossSums& sums) {
    attempt(sums, [&] { evaluate(device_, model_, samples_, indices, sums); });
}

void Learner::throw_failure() {
    if (failure_) {
        std::rethrow_exception(std::exchange(failure_, nullptr));
    }
}

template <class Work>
void Learner::attempt(backend::LossSums& sums, Work&& work) {
    if (!failure_) {
        try {
            work();
            return;
        } catch (const std::exception&) {
            failure_ = std::current_exception();
        }
    }
    sums.loss = std::numeric_limits<double>::quiet_NaN();
}

void Learner::compute_grads(std::span<const std::int64_t> indices, float grad_scale, backend::LossSums& sums) {
    samples_.load(indices, model_.input());
    model_.forward();
    device_.softmax_cross_entropy(model_.logits(), samples_.labels(), samples_.weights(), model_.plan().classes,
                                  grad_scale, model_.grad_logits(), sums);
    model_.backward([&](std::int64_t /*begin*/, std::int64_t end) {
        reduce(buckets_.complete_until(end));
        all_reduce_.progress();
    });
}

void Learner::reduce(std::span<const Bucket> buckets) {
    for (const Bucket& bucket : buckets) {
        all_reduce_.start(model_.grads().subspan(static_cast<std::size_t>(bucket.begin),
                                                 static_cast<std::size_t>(bucket.end - bucket.begin)));
    }
}

void Learner::zero_grads(std::span<const Bucket> buckets) {
    for (const Bucket& bucket : buckets) {
        const std::vector<float> zeros(static_cast<std::size_t>(bucket.end - bucket.begin));
        device_.upload(zeros, model_.grads().data() + bucket.begin);
    }
}

}  // namespace finch::train
