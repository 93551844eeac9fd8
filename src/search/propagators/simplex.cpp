#include "nelder_mead.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace finch::search {
namespace {

constexpr double smallest = 1e-9;          ///< size of a simplex, as a fraction of the range
constexpr std::size_t patience_each = 20;  ///< results without an improvement, per vertex

}  // namespace

Simplex::Simplex(const UnitGenome& centre, const UnitGenome& edges, const std::vector<std::size_t>& free,
                 std::size_t parallel, std::optional<double> loss)
    : free_(free), parallel_(parallel), vertices_{{centre, loss}}, best_(vertices_.front()) {
    for (const std::size_t gene : free_) {
        UnitGenome point = centre;
        point[gene] = reflect(point[gene] + (point[gene] + edges[gene] <= 1 ? edges[gene] : -edges[gene]));
        vertices_.push_back({std::move(point), std::nullopt});
    }
}

template <class Self, class Visitor>
void Simplex::for_each_open(Self& self, const Visitor& visit) {
    for (auto& vertex : self.vertices_) {
        if (!vertex.loss) {
            visit(vertex);
        }
    }
    for (auto& move : self.moves_) {
        if (!move.reflection.loss) {
            visit(move.reflection);
        } else if (!move.second.point.empty() && !move.second.loss) {
            visit(move.second);
        }
    }
}

std::vector<UnitGenome> Simplex::open_points() const {
    std::vector<UnitGenome> points;
    for_each_open(*this, [&](const Vertex& vertex) { points.push_back(vertex.point); });
    return points;
}

bool Simplex::take(const UnitGenome& point, double loss, const std::function<bool(const UnitGenome&)>& is_same) {
    bool is_needed = false;
    for_each_open(*this, [&](Vertex& vertex) {
        if (!is_same(vertex.point)) {
            return;
        }
        // The vertex adopts the evaluated coordinates of real genes, so that rounding errors do not add up.
        for (const std::size_t gene : free_) {
            if (std::abs(point[gene] - vertex.point[gene]) <= coordinate_rounding) {
                vertex.point[gene] = point[gene];
            }
        }
        vertex.loss = loss;
        if (!best_.loss || loss < *best_.loss) {
            best_ = vertex;
            without_gain_ = 0;
        }
        is_needed = true;
    });
    if (is_needed) {
        ++without_gain_;
        go_on();
    }
    return is_needed;
}

void Simplex::go_on() {
    for (Move& move : moves_) {
        if (move.reflection.loss && move.second.point.empty()) {
            choose_second(move);
        }
    }
    bool is_waiting = false;
    for_each_open(*this, [&](const Vertex&) { is_waiting = true; });
    if (is_waiting) {
        return;
    }
    if (!moves_.empty()) {
        end_moves();
    }
    if (std::all_of(vertices_.begin(), vertices_.end(), [](const Vertex& vertex) { return vertex.loss.has_value(); })) {
        begin_moves();
    }
}

/// Returns centroid + coefficient · (centroid − from), mirrored at the bounds.
UnitGenome Simplex::along(const UnitGenome& centroid, const UnitGenome& from, double coefficient) const {
    UnitGenome point = centroid;
    for (const std::size_t gene : free_) {
        point[gene] = reflect(centroid[gene] + coefficient * (centroid[gene] - from[gene]));
    }
    return point;
}

void Simplex::begin_moves() {
    std::stable_sort(vertices_.begin(), vertices_.end(),
                     [](const Vertex& a, const Vertex& b) { return *a.loss < *b.loss; });
    double size = 0;
    for (const Vertex& vertex : vertices_) {
        for (const std::size_t gene : free_) {
            size = std::max(size, std::abs(vertex.point[gene] - vertices_.front().point[gene]));
        }
    }
    has_ended_ = size < smallest || without_gain_ > patience_each * vertices_.size() ||
                 !(*vertices_.front().loss < *vertices_.back().loss);
    const std::size_t stay = vertices_.size() - parallel_;
    centroid_ = vertices_.front().point;
    for (const std::size_t gene : free_) {
        double sum = 0;
        for (std::size_t i = 0; i < stay; ++i) {
            sum += vertices_[i].point[gene];
        }
        centroid_[gene] = sum / static_cast<double>(stay);
    }
    for (std::size_t vertex = stay; vertex < vertices_.size(); ++vertex) {
        moves_.push_back({vertex, {along(centroid_, vertices_[vertex].point, 1), std::nullopt}, {}, false});
    }
}

/// Chooses the second point of a move: an expansion if the reflection is better than all vertices, or a contraction if
/// the reflection is no better than the worst vertex that does not move.
void Simplex::choose_second(Move& move) {
    const double genes = std::max(2.0, static_cast<double>(free_.size()));
    const double expansion = 1 + 2 / genes;
    const double contraction = 0.75 - 0.5 / genes;
    const double loss = *move.reflection.loss;
    const UnitGenome& from = vertices_[move.vertex].point;
    const std::size_t stay = vertices_.size() - parallel_;
    if (loss < loss_of(0)) {
        move.second.point = along(centroid_, from, expansion);
    } else if (!(loss < loss_of(stay - 1))) {
        move.is_contraction = true;
        move.second.point = along(centroid_, from, loss < loss_of(move.vertex) ? contraction : -contraction);
    }
}

/// Each vertex takes the point of its move; after a contraction, only if the point is better. If no move was a success,
/// the simplex shrinks towards the best vertex.
void Simplex::end_moves() {
    bool is_success = false;
    for (const Move& move : moves_) {
        Vertex& vertex = vertices_[move.vertex];
        const double before = *vertex.loss;
        const bool is_second_better = move.second.loss && *move.second.loss < *move.reflection.loss;
        const Vertex& found = is_second_better ? move.second : move.reflection;
        is_success = is_success || !move.is_contraction ||
                     (*move.second.loss < before && *move.second.loss <= *move.reflection.loss);
        if (!move.is_contraction || *found.loss < before) {
            vertex = found;
        }
    }
    moves_.clear();
    if (is_success) {
        return;
    }
    const double shrink = 1 - 1 / std::max(2.0, static_cast<double>(free_.size()));
    const auto best = std::min_element(vertices_.begin(), vertices_.end(),
                                       [](const Vertex& a, const Vertex& b) { return *a.loss < *b.loss; });
    std::iter_swap(vertices_.begin(), best);
    for (std::size_t i = 1; i < vertices_.size(); ++i) {
        for (const std::size_t gene : free_) {
            const double middle = vertices_.front().point[gene];
            vertices_[i].point[gene] = middle + shrink * (vertices_[i].point[gene] - middle);
        }
        vertices_[i].loss.reset();
    }
}

}  // namespace finch::search
