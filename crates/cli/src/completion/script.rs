//! Shell scripts that request completions from windtunnel.

use clap::Command;
use clap_complete::Shell;

/// The completions of a shell. In bash, zsh and fish, names of live runs, nodes and links are
/// completed too.
pub(crate) fn script(shell: Shell, mut command: Command) -> String {
    match shell {
        Shell::Bash => BASH.to_owned(),
        Shell::Zsh => ZSH.to_owned(),
        Shell::Fish => FISH.to_owned(),
        other => {
            let mut script = Vec::new();
            clap_complete::generate(other, &mut command, "windtunnel", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
    }
}

/// `=` and `:` end a word in bash: windtunnel gets the pieces and answers with what follows the
/// last of them.
const BASH: &str = r#"_windtunnel() {
    local IFS=$'\n' line
    COMPREPLY=()
    while read -r line; do
        COMPREPLY+=("$(printf '%q' "$line")")
    done < <("${COMP_WORDS[0]}" complete bash -- "${COMP_WORDS[@]:0:COMP_CWORD}" "${COMP_WORDS[COMP_CWORD]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

complete -F _windtunnel -o bashdefault -o default windtunnel
"#;

const ZSH: &str = r#"#compdef windtunnel

_windtunnel() {
    local -a candidates
    local line value
    for line in "${(@f)$("${words[1]}" complete zsh -- "${(@)words[1,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        value=${line%%$'\t'*}
        candidates+=("${value//:/\\:}:${line#*$'\t'}")
    done
    if (( ${#candidates} )); then
        _describe -V windtunnel candidates -S ''
    else
        _default
    fi
}

if [ "${funcstack[1]}" = "_windtunnel" ]; then
    _windtunnel "$@"
else
    compdef _windtunnel windtunnel
fi
"#;

const FISH: &str = r#"function __windtunnel_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l current (commandline --current-token --cut-at-cursor)
    command $words[1] complete fish -- $words "$current" 2>/dev/null
end

complete --command windtunnel --no-files --condition 'count (__windtunnel_complete) >/dev/null' --arguments '(__windtunnel_complete)'
complete --command windtunnel --force-files --condition 'not count (__windtunnel_complete) >/dev/null'
"#;
