#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

/// What people probably meant by words of other tools: PyTorch, Keras, Optuna, Propulate.
namespace finch::config {

/// A word that people type, and Finch's word for it: a key, a choice, an option or a verb.
struct Synonym {
    std::string_view typed;
    std::string own;
    std::string_view shown;  ///< how a message shows `own`: "scale: log"; empty: 'own' in quotes
};
[[nodiscard]] std::span<const Synonym> synonyms();

/// Returns true if two words differ only in case, '_', '-', blanks, a qualification or arguments: AdamW and adamw,
/// batchSize and batch_size, torch.nn.ReLU() and relu.
[[nodiscard]] bool is_same_word(std::string_view a, std::string_view b);

/// Returns the first synonym of `word` whose own word is in `known`, or null.
[[nodiscard]] const Synonym* synonym_of(std::string_view word, std::span<const std::string> known);

/// Returns the word in `known` that means the same as `word`: the same word, or Finch's word for it. Returns nothing if
/// no word in `known` means the same.
[[nodiscard]] std::optional<std::string> own_word(std::string_view word, std::span<const std::string> known);
/// Returns own_word(word, known), otherwise nearest_word(word, known).
[[nodiscard]] std::optional<std::string> meant_word(std::string_view word, std::span<const std::string> known);

/// Returns " (did you mean 'epochs'?)" for meant_word(word, known). Returns an empty text if there is none.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace finch::config
