#include "graph_builder.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace finch::nn {
namespace {

constexpr std::int64_t alignment = 16;  ///< floats: a cache line, and the widest vector

/// A piece of the arena, needed from one moment to another, both included. A step's moments: forward of node i is i,
/// the loss is the number of nodes n, backward of node i is 2n − i.
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
        const std::int64_t size = plan_.batch * plan_.values[value].shape.size();
        return (size + alignment - 1) / alignment * alignment;
    }
    std::size_t add(std::size_t value, std::size_t first, std::size_t last) {
        pieces_.push_back({.floats = floats(value), .first = first, .last = last});
        return pieces_.size() - 1;
    }

    /// A value lives from its node's forward to the last pass that reads it.
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

    /// A gradient lives from the first pass that writes it to its node's backward. What a second reader of a value
    /// finds is added to what the first has written.
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

    /// The largest first, each at the lowest place that is free as long as it lives.
    void place() {
        std::vector<std::size_t> order(pieces_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return pieces_[a].floats > pieces_[b].floats; });
        std::vector<const Piece*> placed;  // by offset
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
        std::size_t target;  ///< piece
        std::size_t sum;     ///< piece that it is added to, or none
    };

    ModelPlan& plan_;
    std::vector<Piece> pieces_;       ///< first the values
    std::vector<std::size_t> grads_;  ///< by value: piece, or none
    std::vector<Written> written_;
};

}  // namespace

void place_activations(ModelPlan& plan) {
    Placement(plan).run();
}

}  // namespace finch::nn
