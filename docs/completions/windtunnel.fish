# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_windtunnel_global_optspecs
    string join \n h/help V/version
end

function __fish_windtunnel_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_windtunnel_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_windtunnel_using_subcommand
    set -l cmd (__fish_windtunnel_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c windtunnel -n "__fish_windtunnel_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -s V -l version -d 'Print version'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "run" -d 'Run a scenario: build its network, run its programs, judge the run, leave nothing behind'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "link" -d 'Run a command across one emulated link, without a file'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "check" -d 'Validate a scenario and show its paths, without running anything'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "generate" -d 'Write the scenario of a star, a ring, a tree, a random graph and the like'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "import" -d 'Write the scenario of a network that another tool\'s file describes'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "exec" -d 'Run a command in a node of a live run'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "shell" -d 'Open a shell in a node of a live run'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "ps" -d 'List nodes and programs of a live run'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "top" -d 'Watch the links and programs of a live run in the terminal, and change links'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "set" -d 'Change properties of a link in a live run'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "down" -d 'Take a link of a live run down: it carries nothing until it is up again'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "up" -d 'Bring a link of a live run up again'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "do" -d 'Let an event happen in a live run, in the words of the scenario file'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "stop" -d 'End a live run as if it had finished, and wait until it has'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "schema" -d 'Print the JSON Schema of the scenario file'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "keygen" -d 'Make the key of a cluster: who has it may use all of its machines'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "agent" -d 'Make this machine part of a cluster, until Ctrl-C'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "hosts" -d 'List the machines of a cluster: what they have, how their clocks stand, how far they are apart'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "attach" -d 'Follow a run over several machines, from any machine that has the cluster\'s key'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "part" -d 'Do one machine\'s part of a run, as the agent at the other end of standard input wants it'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "doctor" -d 'Tell what this machine allows and denies, and how to change it'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "completions" -d 'Print the completions of a shell'
complete -c windtunnel -n "__fish_windtunnel_needs_command" -f -a "manual" -d 'Print the manual page'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l out -d 'The run folder, new or empty [default: runs/NAME-DATE-TIME, with a link `latest` beside it]' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l seed -d 'Seed of every random stream, instead of the file\'s' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l duration -d 'How long the run lasts at the most, instead of the file\'s' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l max-lateness -d 'Packets that leave later than this are late; more than 0.1% of all or of a link direction, or one that is 20 times as late, make the run unfaithful' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l on-overload -d 'What is done when this machine cannot keep up, instead of what the file says: `report` it; `abort` the run; or `freeze` all programs until the emulation has caught up' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l output-limit -d 'How much is kept of each stream that a program writes' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l packet-memory -d 'Memory for packets in queues and in flight' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l junit -d 'Write the results as JUnit XML to this file too, for a CI system; the run folder always has them as `junit.xml`' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l hosts -d 'Machines of a cluster, with commas: agents\' names or addresses, `all`, or `slurm` for those of the Slurm allocation that this is in. Where no agent answers, one is started over ssh; it ends with this command' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l ssh -d 'With --hosts: how agents are started; a host and a command are added' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l remote-windtunnel -d 'With --hosts: windtunnel on machines where an agent is started, as a shell there reads it [default: windtunnel; for `slurm` the path of this program]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l key -d 'The cluster\'s key, `-` for standard input [default: windtunnel/cluster.key in $XDG_CONFIG_HOME or ~/.config]' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l no-offload -d 'Let no packet be larger than its link\'s MTU, also where nobody could tell'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l quiet -d 'Show the verdict only'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l plain -d 'With --hosts: let packets between machines go in the clear, on a network that is trusted'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -l detach -d 'With --hosts: print the run\'s number when it has begun, and do not wait for its end'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l latency -d 'Propagation delay each way, such as 40ms' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l jitter -d 'Random delay on top, such as 2ms or \'{spread: 2ms, distribution: normal}\'' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l rate -d 'Bandwidth, such as 10mbit, or \'{trace: FILE}\'' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l loss -d 'Packets that vanish, such as 1%' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l queue -d 'Room in front of the rate: packets, bytes or time, such as 50ms' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l discipline -d 'Who is dropped when: drop-tail, drop-head, codel, fq-codel, pie, red, fair' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l duplicate -d 'Packets that arrive twice' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l corrupt -d 'Packets with a flipped bit' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l reorder -d 'Packets that others overtake' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l mtu -d 'Largest IP packet in bytes' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l overhead -d 'Framing charged for each packet, such as ethernet or 42' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l trace -d 'A table of (time, rate, latency, loss) that the link follows' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l preset -d 'An access link by its name: lte, dsl, geo … (up is towards the server)' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l up -d 'Properties from client to server only: `key=value`, several between spaces' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l down -d 'Properties from server to client only' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l server -d 'A program for the other end, such as \'iperf3 -s -1\'' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l ready -d 'What the command waits for: `listen`, `tcp:PORT`, `unix:PATH`, `log:REGEX`, or `none`' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l out -d 'The run folder, new or empty [default: runs/NAME-DATE-TIME, with a link `latest` beside it]' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l seed -d 'Seed of every random stream, instead of the file\'s' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l duration -d 'How long the run lasts at the most, instead of the file\'s' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l max-lateness -d 'Packets that leave later than this are late; more than 0.1% of all or of a link direction, or one that is 20 times as late, make the run unfaithful' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l on-overload -d 'What is done when this machine cannot keep up, instead of what the file says: `report` it; `abort` the run; or `freeze` all programs until the emulation has caught up' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l output-limit -d 'How much is kept of each stream that a program writes' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l packet-memory -d 'Memory for packets in queues and in flight' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l junit -d 'Write the results as JUnit XML to this file too, for a CI system; the run folder always has them as `junit.xml`' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l print -d 'Write the scenario that this means, to begin a file with, and run nothing'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l no-offload -d 'Let no packet be larger than its link\'s MTU, also where nobody could tell'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l quiet -d 'Show the verdict only'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand link" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand check" -l from -d 'Only paths from this node or group' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand check" -l to -d 'Only paths to this node or group' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand check" -l packet-memory -d 'Memory for packets in queues and in flight that a run on this machine would get' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand check" -l hosts -d 'Machines of a cluster, with commas: agents\' names or addresses, `all`, or `slurm` for those of the Slurm allocation that this is in. Where no agent answers, one is started over ssh; it ends with this command' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand check" -l ssh -d 'With --hosts: how agents are started; a host and a command are added' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand check" -l remote-windtunnel -d 'With --hosts: windtunnel on machines where an agent is started, as a shell there reads it [default: windtunnel; for `slurm` the path of this program]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand check" -l key -d 'The cluster\'s key, `-` for standard input [default: windtunnel/cluster.key in $XDG_CONFIG_HOME or ~/.config]' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand check" -l all -d 'Show every pair of nodes [default: the first 200]'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand check" -l events -d 'Show everything that `events` come to, in the order of time: repetitions, flaps and churn included'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand check" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l nodes -d 'Nodes in all [default: one for each router that takes nodes; 10 for star and dumbbell]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l routers -d 'Routers of a chain, ring, full-mesh, random or scale-free shape [default: as many as --nodes, else 10]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l size -d 'Rows and columns of a grid or torus, such as 3x5 [default: 4x4]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l fanout -d 'Children of each router of a tree that is no leaf [default: 3]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l depth -d 'Levels of a tree below its root [default: 2]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l dimension -d 'Dimension of a butterfly: it has D+1 levels of 2^D routers [default: 2]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l left -d 'Nodes on the left of a dumbbell [default: half of --nodes, else 5]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l right -d 'Nodes on the right of a dumbbell [default: half of --nodes, else 5]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l probability -d 'Probability that two routers of a random graph are joined [default: 2·ln(n)/n]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l attach -d 'Links that each new router of a scale-free graph brings [default: 2]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l latency -d 'Latency of the shape\'s links, or a range to draw from, such as 5ms..50ms' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l jitter -d 'Jitter of the shape\'s links' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l loss -d 'Loss of the shape\'s links' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l rate -d 'Rate of the shape\'s links [default: no limit]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l queue -d 'Queue in front of that rate, such as 100p, 256KB or 50ms' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l access-latency -d 'Latency of the links that attach nodes, or a range to draw from [default: 1ms]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l access-jitter -d 'Jitter of the links that attach nodes' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l access-loss -d 'Loss of the links that attach nodes' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l access-rate -d 'Rate of the links that attach nodes [default: no limit]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l access-queue -d 'Queue in front of that rate' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l run -d 'The command of every node [default: none; nodes are there for exec and shell]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l seed -d 'Seed of random shapes and of latencies from a range' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -s o -l output -d 'Write to this new file instead of standard output' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l force -d 'Overwrite a file that is there already'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand generate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand import" -l format -d 'What the file is [default: told from its content]' -r -f -a "graphml\t'GraphML, as of the Internet Topology Zoo'
gml\t'GML, as of the Internet Topology Zoo'
shadow\t'GML of a Shadow network graph'
modelnet\t'ModelNet\'s and SPLAY\'s XML'
kollaps\t'Kollaps\' XML'
containerlab\t'containerlab\'s YAML'"
complete -c windtunnel -n "__fish_windtunnel_using_subcommand import" -l hosts -d 'Nodes to attach to each router [default: 1 where the file has no end hosts of its own, else 0]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand import" -l hosts-at -d 'Attach nodes to these routers only: names, or labels of the file' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand import" -l latency -d 'Latency of links for which the file has neither a latency nor coordinates' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand import" -l run -d 'The command of every node [default: none; nodes are there for exec and shell]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand import" -s o -l output -d 'Write to this new file instead of standard output' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand import" -l strict -d 'Fail if anything could not be carried over, and write nothing'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand import" -l force -d 'Overwrite a file that is there already'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand import" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand exec" -l cwd -d 'Working directory of the command [default: the current directory]' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand exec" -l env -d 'A variable for the command; may be given more than once' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand exec" -l run -d 'Folder of the live run' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand exec" -l json -d 'Write a failure of windtunnel itself to standard error as JSON; the command\'s output stays what it is'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand exec" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand shell" -l cwd -d 'Working directory of the command [default: the current directory]' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand shell" -l env -d 'A variable for the command; may be given more than once' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand shell" -l run -d 'Folder of the live run' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand shell" -l json -d 'Write a failure of windtunnel itself to standard error as JSON; the command\'s output stays what it is'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand shell" -s h -l help -d 'Print help'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand ps" -l run -d 'Folder of the live run' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand ps" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand ps" -s h -l help -d 'Print help'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand top" -l interval -d 'Time between two looks at the run, at least 100ms' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand top" -l run -d 'Folder of the live run' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand top" -l once -d 'Print the tables once as plain text, with all columns'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand top" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand set" -l direction -d 'Only this direction: `up`, `down`, or `from-to` with the names at the link\'s ends [default: both]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand set" -l run -d 'Folder of the live run' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand set" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand set" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand down" -l direction -d 'Only this direction: `up`, `down`, or `from-to` with the names at the link\'s ends [default: both]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand down" -l run -d 'Folder of the live run' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand down" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand down" -s h -l help -d 'Print help'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand up" -l direction -d 'Only this direction: `up`, `down`, or `from-to` with the names at the link\'s ends [default: both]' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand up" -l run -d 'Folder of the live run' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand up" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand up" -s h -l help -d 'Print help'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand do" -l run -d 'Folder of the live run' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand do" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand do" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand stop" -l run -d 'Folder of the live run' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand stop" -l no-wait -d 'Return at once instead of waiting until the run has ended'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand stop" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand stop" -s h -l help -d 'Print help'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand schema" -l json -d 'No difference: a schema is JSON in any case'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand schema" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand keygen" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand keygen" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l listen -d 'Where to hear: an address and a UDP port' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l advertise -d 'Where other machines reach this one, if that is not what this machine sees itself; without a port that of --listen. `ssh`: the address that the ssh session has reached which this is in' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l join -d 'Other agents to look for, with commas; one that is there is enough, and a name of which nothing is known yet is looked up again' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l name -d 'The machine\'s name, instead of its own' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l labels -d 'Words that tell machines apart, with commas: `ssd,rack=7`' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l cpus -d 'Processors to be told to others, instead of all that this process may use' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l memory -d 'Memory to be told to others, instead of all' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l uplink -d 'What this machine can send to others' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l max-nodes -d 'The most nodes that all runs together may have here' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l max-cpu -d 'The most processors that the nodes of all runs together may ask for here: `2`, `0.5`' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l max-memory -d 'The most memory that the nodes of all runs together may ask for here' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l deny-exec -d 'Programs that files may not start here, with commas; `*` stands for any text: `nc*,/opt/*`' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l folder -d 'Where runs keep their files until somebody fetches them; nothing else may be there [default: windtunnel/agent-MACHINE-PORT in $XDG_STATE_HOME or ~/.local/state]' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l keep-results -d 'How long the results of a run that is over wait for somebody to fetch them (`windtunnel attach`); then they are removed' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l key -d 'The cluster\'s key, `-` for standard input [default: windtunnel/cluster.key in $XDG_CONFIG_HOME or ~/.config]' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l slurm -d 'Tell others the name, the processors and the memory that the Slurm step has which this is in'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l until-stdin-closes -d 'Print where others reach this agent, and end when standard input does, once nobody watches a run here; then nothing is left of it'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand agent" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand hosts" -l key -d 'The cluster\'s key, `-` for standard input [default: windtunnel/cluster.key in $XDG_CONFIG_HOME or ~/.config]' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand hosts" -l measure -d 'Measure what goes through from each machine to each other, one pair after the other'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand hosts" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand hosts" -s h -l help -d 'Print help'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand attach" -l host -d 'A machine that has a part of the run' -r
complete -c windtunnel -n "__fish_windtunnel_using_subcommand attach" -l out -d 'The run folder, new or empty [default: runs/NAME-DATE-TIME, with a link `latest` beside it]' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand attach" -l key -d 'The cluster\'s key, `-` for standard input [default: windtunnel/cluster.key in $XDG_CONFIG_HOME or ~/.config]' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand attach" -l quiet -d 'Show the verdict only'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand attach" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand attach" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand part" -l hide -d 'A file or folder that no program may see' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand part" -s h -l help -d 'Print help'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand doctor" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand completions" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand manual" -l out -d 'Write `windtunnel.1` into this folder instead' -r -F
complete -c windtunnel -n "__fish_windtunnel_using_subcommand manual" -l json -d 'Write JSON to standard output, with the fields of the human output; failures too'
complete -c windtunnel -n "__fish_windtunnel_using_subcommand manual" -s h -l help -d 'Print help (see more with \'--help\')'
