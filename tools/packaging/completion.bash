# Bash's completion of finch. Installed as share/bash-completion/completions/finch, where bash-completion finds it by itself;
# without that: source it. The command line itself is the table below, which the program wrote.

# The lines of the table that are about VERB, without it: "--run|DIR" for an option, "|RUN" for an argument.
_finch_lines_of() {  # VERB
    local line
    while IFS= read -r line; do
        [[ "$line" != "$1|"* ]] || printf '%s\n' "${line#"$1|"}"
    done <<<"$_finch_command_line"
}

# The words that may follow VERB in a verb's name.
_finch_verbs_after() {  # VERB
    local line verb
    while IFS='|' read -r line _; do
        verb=$line
        [ -z "$1" ] || { [[ "$line" == "$1 "* ]] && verb=${line#"$1 "}; } || continue
        [ -z "$verb" ] || printf '%s\n' "${verb%% *}"
    done <<<"$_finch_command_line" | sort -u
}

# The type of NAME (an option, or empty) of VERB; of several arguments the NUMBERth.
_finch_type() {  # VERB NAME [NUMBER]
    local line number=${3:-1}
    while IFS= read -r line; do
        [ "${line%%|*}" = "$2" ] || continue
        [ $((number -= 1)) -gt 0 ] || { printf '%s\n' "${line#*|}"; return; }
    done <<<"$(_finch_lines_of "$1")"
    return 1
}

# Run directories at PREFIX, and folders that others may be in. With nothing typed yet, those in runs/, where they are usual.
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
            continue  # bash makes words of --run=DIR and of KEY=VALUE
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

# The program's own words follow.
