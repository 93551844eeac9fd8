#include "graph_builder.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace finch::nn {
namespace {

constexpr std::int64_t alignment = 16;  ///< floats: one cache line, as wide as the widest vector register

/// A piece of the activation arena that is in use from the time `first` to the time `last`, both included. The times of
/// a step: forward of node i is i, the loss is the number of nodes n, backward of node i is 2n − i.
struct Piece {
    std::int64_t floats = 0;
    std::size_t first = 0;
    std::size_t last = 0;
    std::int64_t offset = 0;

    [[nodiscard]] bool lives_with(const Piece& other) const { return first <= other.last && other.first <= last; }
    [[nodiscard]] std::int64_t end() const { return offset + floats; }
};

class Placement {
public:
    explicit Placement(ModelPlan& plan) : plan_(plan) {}

    void run() {
        find_values();
        find_grads();
        place();
        write();
    }

private:
    [[nodiscard]] std::size_t loss() const { return plan_.nodes.size(); }
    [[nodiscard]] std::size_t backward(std::size_t node) const { return 2 * plan_.nodes.size() - node; }
    [[nodiscard]] std::int64_t floats(std::size_t value) const {
        const std::int64_t size = plan_.values[value].floats(plan_.block);
        return (size + alignment - 1) / alignment * alignment;
    }
    std::size_t add(std::size_t value, std::size_t first, std::size_t last) {
        pieces_.push_back({.floats = floats(value), .first = first, .last = last});
        return pieces_.size() - 1;
    }

    /// Adds an arena piece for each value. A value is in use from the forward pass of the node that computes it to the
    /// last forward or backward pass that reads it.
    void find_values() {
        for (std::size_t value = 0; value < plan_.values.size(); ++value) {
            add(value, value == 0 ? 0 : value - 1, 0);  // node i makes value i + 1
        }
        pieces_.back().last = loss();
        for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
            const Node& node = plan_.nodes[i];
            const std::size_t last =
                node.has_backward && backend::backward_reads_input(node.operation) ? backward(i) : i;
            for (const std::size_t input : node.inputs) {
                pieces_[input].last = std::max(pieces_[input].last, last);
            }
            if (node.has_backward && backend::backward_reads_output(node.operation)) {
                pieces_[node.output].last = std::max(pieces_[node.output].last, backward(i));
            }
        }
    }

    /// Adds an arena piece for each gradient of a value. The gradient is in use from the first backward pass that
    /// writes it to the backward pass of the node that computed the value. If several nodes read a value, the gradients
    /// that they compute for it are added to the first of these gradients.
    void find_grads() {
        grads_.assign(plan_.values.size(), none);
        grads_.back() = add(plan_.values.size() - 1, loss(), loss());
        for (std::size_t i = plan_.nodes.size(); i-- > 0;) {
            Node& node = plan_.nodes[i];
            if (!node.has_backward) {
                continue;
            }
            pieces_[grads_[node.output]].last = backward(i);
            for (std::size_t k = 0; k < node.inputs.size(); ++k) {
                if (node.grad_inputs[k].is_needed) {
                    std::size_t& grad = grads_[node.inputs[k]];
                    const std::size_t target = add(node.inputs[k], backward(i), backward(i));
                    written_.push_back({i, k, target, grad});
                    grad = grad == none ? target : grad;
                }
            }
        }
    }

    /// Places the pieces in order of size, the largest first. Each piece gets the lowest offset that is free while the
    /// piece is in use.
    void place() {
        std::vector<std::size_t> order(pieces_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return pieces_[a].floats > pieces_[b].floats; });
        std::vector<const Piece*> placed;  // sorted by offset
        for (const std::size_t number : order) {
            Piece& piece = pieces_[number];
            for (const Piece* other : placed) {
                if (other->offset >= piece.end()) {
                    break;
                }
                if (piece.lives_with(*other)) {
                    piece.offset = std::max(piece.offset, other->end());
                }
            }
            placed.insert(std::upper_bound(placed.begin(), placed.end(), &piece,
                                           [](const Piece* a, const Piece* b) { return a->offset < b->offset; }),
                          &piece);
            plan_.activations = std::max(plan_.activations, piece.end());
        }
    }

    void write() {
        for (std::size_t value = 0; value < plan_.values.size(); ++value) {
            plan_.values[value].offset = pieces_[value].offset;
        }
        for (Node& node : plan_.nodes) {
            if (node.has_backward) {
                node.grad_output = pieces_[grads_[node.output]].offset;
            }
        }
        for (const Written& written : written_) {
            InputGrad& grad = plan_.nodes[written.node].grad_inputs[written.input];
            grad.offset = pieces_[written.target].offset;
            grad.add_to = written.sum == none ? -1 : pieces_[written.sum].offset;
        }
        plan_.grad_logits = pieces_[grads_.back()].offset;
    }

    static constexpr auto none = static_cast<std::size_t>(-1);
    struct Written {
        std::size_t node;
        std::size_t input;
        std::size_t target;  ///< index of the piece
        std::size_t sum;     ///< index of the piece to which it is added, or none
    };

    ModelPlan& plan_;
    std::vector<Piece> pieces_;       ///< starts with the values
    std::vector<std::size_t> grads_;  ///< per value: index of the piece, or none
    std::vector<Written> written_;
};

}  // namespace

void place_activations(ModelPlan& plan) {
    Placement(plan).run();
}

std::int64_t least_bytes(const ModelPlan& plan, const Node& node) {
    const auto floats = [&](std::size_t value) { return plan.values[value].floats(plan.batch); };
    const bool reads_input = node.has_backward && backend::backward_reads_input(node.operation);
    const bool reads_output = node.has_backward && backend::backward_reads_output(node.operation);
    std::int64_t moved = floats(node.output) * (1 + (node.has_backward ? 1 : 0) + (reads_output ? 1 : 0));
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        moved += floats(node.inputs[k]) * (1 + (reads_input ? 1 : 0) + (node.grad_inputs[k].is_needed ? 1 : 0));
    }
    return moved * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace finch::nn
