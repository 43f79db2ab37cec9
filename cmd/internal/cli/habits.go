// SPDX-License-Identifier: Apache-2.0

package cli

// straceHabits says what iotape has instead of the flags of strace(1) that people use by
// habit.
var straceHabits = map[string]string{
	"c": "iotape stat TAPE sums up calls; iotape top counts them while they happen",
	"C": "iotape stat TAPE sums up calls; iotape top counts them while they happen",
	"e": "all calls are recorded and shown; to select some of them: %s --filter 'strace:-e %v'",
	"E": "the command gets the environment of iotape: env NAME=VALUE iotape record -- COMMAND",
	"f": "threads and child processes are always recorded: leave -f out",
	"i": "iotape record --stacks EXPR records the callers of calls: iotape print TAPE --stack-trace",
	"o": "name the tape after the subcommand: iotape record -o TAPE -- COMMAND",
	"p": "iotape record --pid PID records a process that runs already",
	"P": "to select the calls on a path: %s --filter 'path = %v'",
	"r": "times are always recorded and printed: leave -r out",
	"s": "all bytes are recorded: iotape print TAPE --max-bytes N shows more of them",
	"t": "times are always recorded: iotape print TAPE --time wall",
	"T": "the time that a call took is always recorded and printed: leave -T out",
	"u": "the command gets the user of iotape: setpriv or sudo run it as another",
	"v": "iotape print TAPE --verbose shows all fields",
	"w": "iotape stat TAPE sums up calls, with the time from entry to return",
	"y": "the files of descriptors are always recorded and printed: leave -y out",
	"z": "to select the calls that succeeded: %s --filter 'not failed'",
	"Z": "to select the calls that failed: %s --filter failed",
}

// straceValues are what the flags get whose value stands in a hint, where the command line does not show it.
var straceValues = map[rune]string{'e': "trace=file", 'P': "/PATH"}

// liveHabits are those of commands that print while they record.
var liveHabits = map[string]string{
	"s": "--max-bytes N shows up to 64 bytes of each buffer; to see more, record a tape",
	"t": "times are always recorded: --time wall shows the time of day",
}

// otherCommands are words of other tools for commands of iotape.
var otherCommands = map[string]string{
	"cat": "print", "show": "print", "view": "print",
	"info": "stat", "summary": "stat", "count": "stat", "inspect": "stat",
	"verify": "check", "fsck": "check", "validate": "check",
	"play": "replay", "rerun": "replay",
	"capture": "record", "start": "record", "attach": "record --pid PID",
	"follow": "tail", "live": "trace",
	"tree": "ps", "sql": "query", "import": "convert", "export": "convert",
	"cut": "slice", "filter": "slice", "join": "merge",
	"anonymize": "anonymise", "fix": "repair", "recover": "repair", "syscalls": "ops", "gui": "serve", "web": "serve",
}

// otherFlags are words of other tools for flags, with what to use instead where a command has no
// such flag. %s stands for the command.
var otherFlags = map[string]string{
	"limit": "to see the first lines only: %s ... | head -n N",
	"head":  "to see the first lines only: %s ... | head -n N",
	"where": "--filter EXPR selects events (docs/filters.md)",
	"grep":  "--filter EXPR selects events (docs/filters.md)",
	"user":  "--filter 'uid = NAME' selects the events of a user",
	"path":  "--filter 'path under DIR' selects the events of a directory",
	"trace": "--filter 'strace:-e trace=SET' selects calls as strace does",
}
