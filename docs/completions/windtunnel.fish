function __windtunnel_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l current (commandline --current-token --cut-at-cursor)
    command $words[1] complete fish -- $words "$current" 2>/dev/null
end

complete --command windtunnel --no-files --condition 'count (__windtunnel_complete) >/dev/null' --arguments '(__windtunnel_complete)'
complete --command windtunnel --force-files --condition 'not count (__windtunnel_complete) >/dev/null'
