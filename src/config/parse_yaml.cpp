#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/config/tree.hpp"

#include <map>
#include <sstream>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace finch::config {
namespace {

constexpr std::size_t most_values =
    100000;                              // aliases of aliases could make any number; copies kept for anchors count too
constexpr std::size_t most_keys = 4096;  // of one section: each is compared with all before it

/// Builds a Tree from yaml-cpp's parser events: each event has a line number. yaml-cpp's own nodes hide duplicate keys.
class TreeBuilder final : public YAML::EventHandler {
public:
    explicit TreeBuilder(std::string source) : source_(std::move(source)) {}

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (documents_++ > 0) {
            refuse(mark, "a second document begins here; a configuration is one");
        }
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(at(mark), mark, anchor); }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        check_tag(mark, tag);
        Tree tree = at(mark);
        tree.kind = Tree::Kind::scalar;
        tree.text = value;
        tree.quoted = tag == "!";
        add(std::move(tree), mark, anchor);
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto known = anchors_.find(anchor);
        if (known == anchors_.end()) {
            refuse(mark, "an alias stands inside of what it names");
        }
        count(mark, values_in(known->second));
        add(Tree(known->second), mark, 0);
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        open(Tree::Kind::list, mark, tag, anchor);
    }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        open(Tree::Kind::map, mark, tag, anchor);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapEnd() override { close(); }

    [[nodiscard]] Tree take() { return std::move(root_); }
    [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& what) const {
        std::string path;
        for (const Frame& frame : stack_) {
            if (frame.tree.kind == Tree::Kind::list) {
                path = path_of(path, frame.tree.items.size());
            } else if (frame.has_key) {
                path = path_of(path, frame.tree.keys.back());
            }
        }
        fail(at(mark), path, what);
    }

private:
    /// A list or map that the parser has not closed yet.
    struct Frame {
        Tree tree;
        YAML::Mark mark;
        YAML::anchor_t anchor = 0;
        bool has_key = false;  ///< the last of tree.keys waits for its value
        std::string key_place{};
    };

    [[nodiscard]] Tree at(const YAML::Mark& mark) const {
        return {.place = mark.is_null() ? source_ : fmt::format("{}:{}", source_, mark.line + 1)};
    }
    void check_tag(const YAML::Mark& mark, const std::string& tag) const {
        if (!tag.empty() && tag != "?" && tag != "!") {
            refuse(mark, fmt::format("the tag {} means nothing here; leave it out", tag));
        }
    }
    void open(Tree::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
        check_tag(mark, tag);
        Tree tree = at(mark);
        tree.kind = kind;
        stack_.push_back({std::move(tree), mark, anchor});
    }
    void close() {
        Frame frame = std::move(stack_.back());
        stack_.pop_back();
        add(std::move(frame.tree), frame.mark, frame.anchor);
    }
    static std::size_t values_in(const Tree& tree) {
        std::size_t count = 1;
        for (const Tree& item : tree.items) {
            count += values_in(item);
        }
        return count;
    }
    void count(const YAML::Mark& mark, std::size_t values) {
        values_ += values;
        if (values_ > most_values) {
            refuse(mark, fmt::format("more than {} values", most_values));
        }
    }
    void add(Tree tree, const YAML::Mark& mark, YAML::anchor_t anchor) {
        if (anchor != 0) {
            count(mark, values_in(tree));
            anchors_[anchor] = tree;
        }
        count(mark, 1);
        if (stack_.empty()) {
            root_ = std::move(tree);
        } else if (Frame& frame = stack_.back(); frame.tree.kind == Tree::Kind::list) {
            frame.tree.items.push_back(std::move(tree));
        } else if (frame.has_key) {
            tree.place = frame.key_place;
            frame.tree.items.push_back(std::move(tree));
            frame.has_key = false;
        } else {
            add_key(frame, tree, mark);
        }
    }
    void add_key(Frame& frame, const Tree& tree, const YAML::Mark& mark) const {
        if (tree.kind != Tree::Kind::scalar || tree.text.empty()) {
            refuse(mark, "a key must be a word");
        }
        if (frame.tree.keys.size() == most_keys) {
            refuse(mark, fmt::format("more than {} keys in one section", most_keys));
        }
        const Tree* const before = frame.tree.find(tree.text);
        frame.tree.keys.push_back(tree.text);
        frame.key_place = tree.place;
        frame.has_key = true;
        if (before != nullptr) {
            refuse(mark, fmt::format("duplicate key, first given at {}; remove one", before->place));
        }
    }

    std::string source_;
    int documents_ = 0;
    std::vector<Frame> stack_;
    std::map<YAML::anchor_t, Tree> anchors_;
    std::size_t values_ = 0;
    Tree root_;
};

}  // namespace

Tree parse_yaml(const std::string& yaml, const std::string& source) {
    if (yaml.find('\0') != std::string::npos) {
        throw ConfigError(fmt::format("{}: is no text: it holds a zero byte", source));
    }
    std::istringstream stream(yaml);
    TreeBuilder builder(source);
    try {
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {
        }
    } catch (const YAML::Exception& error) {
        const bool is_text = error.msg == YAML::ErrorMsg::MAP_VALUE || error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW;
        const char* const hint = yaml.find('\t') != std::string::npos ? "; indent with blanks, not with tabs"
                                 : is_text ? "; a text with ': ', ',' or braces must be in quotes"
                                           : "";
        throw ConfigError(error.mark.is_null()
                              ? fmt::format("{}: is no YAML: {}{}", source, error.msg, hint)
                              : fmt::format("{}:{}: is no YAML: {} (column {}){}", source, error.mark.line + 1,
                                            error.msg, error.mark.column + 1, hint));
    }
    return builder.take();
}

}  // namespace finch::config
