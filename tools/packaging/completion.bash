# The completion of finch for bash. If it is installed as share/bash-completion/completions/finch, bash-completion finds
# it. Otherwise source this file. The table of verbs and options below was written by the program.

# Prints the lines of the table for VERB, without VERB: "--run|DIR" for an option, "|RUN" for an argument.
_finch_lines_of() {  # VERB
    local line
    while IFS= read -r line; do
        [[ "$line" != "$1|"* ]] || printf '%s\n' "${line#"$1|"}"
    done <<<"$_finch_command_line"
}

# Prints the words that may follow VERB as part of a longer verb.
_finch_verbs_after() {  # VERB
    local line verb
    while IFS='|' read -r line _; do
        verb=$line
        [ -z "$1" ] || { [[ "$line" == "$1 "* ]] && verb=${line#"$1 "}; } || continue
        [ -z "$verb" ] || printf '%s\n' "${verb%% *}"
    done <<<"$_finch_command_line" | sort -u
}

# Prints the type of the option NAME of VERB. If NAME is empty, prints the type of argument NUMBER.
_finch_type() {  # VERB NAME [NUMBER]
    local line number=${3:-1}
    while IFS= read -r line; do
        [ "${line%%|*}" = "$2" ] || continue
        [ $((number -= 1)) -gt 0 ] || { printf '%s\n' "${line#*|}"; return; }
    done <<<"$(_finch_lines_of "$1")"
    return 1
}

# Prints the run directories that begin with PREFIX, and the folders that may contain run directories. If PREFIX is
# empty and runs/ contains a run, prints the folders in runs/.
_finch_runs() {  # PREFIX
    local folder
    local -a all usual=()
    mapfile -t all < <(compgen -d -- "$1")
    [ -n "$1" ] || mapfile -t usual < <(compgen -d -- runs/)
    for folder in "${usual[@]}"; do
        [ ! -e "$folder/population.h5" ] || { printf '%s\n' "${usual[@]}"; return; }
    done
    for folder in "${all[@]}"; do
        if [ -e "$folder/population.h5" ] || [ -n "$(compgen -d -- "$folder/")" ]; then printf '%s\n' "$folder"; fi
    done
}

_finch_values() {  # TYPE PREFIX
    case $1 in
        RUN) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(_finch_runs "$2") ;;
        DIR) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
        FILE | PATH) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
        CONFIG) compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -X '!*.yaml' -- "$2"; compgen -f -X '!*.yml' -- "$2"; compgen -d -- "$2") ;;
        {*}) local words=${1#\{}
            words=${words%\}}
            mapfile -t COMPREPLY < <(compgen -W "${words//,/ }" -- "$2") ;;
        *=*) compopt -o nospace 2>/dev/null ;;
    esac
}

_finch() {
    local current=${COMP_WORDS[COMP_CWORD]} verb='' option='' word type arguments=0 i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [ "$word" = = ]; then
            continue  # bash splits --run=DIR and KEY=VALUE into words
        elif [ -n "$option" ]; then
            option=
            [ "${COMP_WORDS[i + 1]}" != = ] || i=$((i + 2))  # KEY = VALUE
        elif [[ "$word" == -* ]]; then
            if type=$(_finch_type "$verb" "$word") && [ -n "$type" ]; then option=$word; fi
        elif [ "$arguments" = 0 ] && grep -qxF -- "$word" <<<"$(_finch_verbs_after "$verb")"; then
            verb=${verb:+$verb }$word
        else
            arguments=$((arguments + 1))
        fi
    done
    [ "$current" != = ] || current=
    if [ -n "$option" ]; then
        _finch_values "$(_finch_type "$verb" "$option")" "$current"
    elif [[ "$current" == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_finch_lines_of "$verb" | sed -n 's/^\(-[^|]*\)|.*/\1/p')" -- "$current")
    elif [ "$arguments" = 0 ] && [ -n "$(_finch_verbs_after "$verb")" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_finch_verbs_after "$verb")" -- "$current")
    else
        _finch_values "$(_finch_type "$verb" '' $((arguments + 1)))" "$current"
    fi
}
complete -F _finch finch

# The table that the program wrote follows.
