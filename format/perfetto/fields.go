// SPDX-License-Identifier: Apache-2.0

package perfetto

import "google.golang.org/protobuf/encoding/protowire"

// The numbers of the fields that are written, by message.
const (
	tracePacket = protowire.Number(1) // Trace

	packetProcessTree     = protowire.Number(2) // TracePacket
	packetClockSnapshot   = protowire.Number(6)
	packetTimestamp       = protowire.Number(8)
	packetSequenceID      = protowire.Number(10)
	packetTrackEvent      = protowire.Number(11)
	packetInternedData    = protowire.Number(12)
	packetSequenceFlags   = protowire.Number(13)
	packetSystemInfo      = protowire.Number(45)
	packetDefaults        = protowire.Number(59)
	packetTrackDescriptor = protowire.Number(60)
	packetFirst           = protowire.Number(87)

	snapshotClocks  = protowire.Number(1) // ClockSnapshot
	snapshotPrimary = protowire.Number(2)
	clockID         = protowire.Number(1) // ClockSnapshot.Clock
	clockTimestamp  = protowire.Number(2)

	systemUtsname  = protowire.Number(1) // SystemInfo
	systemTracer   = protowire.Number(4)
	systemMachine  = protowire.Number(17)
	utsnameRelease = protowire.Number(3) // Utsname
	utsnameMachine = protowire.Number(4)

	defaultsClock = protowire.Number(58) // TracePacketDefaults

	treeProcesses  = protowire.Number(1) // ProcessTree
	treePID        = protowire.Number(1) // ProcessTree.Process
	treePPID       = protowire.Number(2)
	treeCmdline    = protowire.Number(3)
	treeUID        = protowire.Number(5)
	treeNameIsComm = protowire.Number(9)

	trackUUID    = protowire.Number(1) // TrackDescriptor
	trackName    = protowire.Number(2)
	trackProcess = protowire.Number(3)
	trackThread  = protowire.Number(4)
	trackParent  = protowire.Number(5)
	trackCounter = protowire.Number(8)
	processPID   = protowire.Number(1) // ProcessDescriptor
	processArgv  = protowire.Number(2)
	processName  = protowire.Number(6)
	processStart = protowire.Number(7)
	threadPID    = protowire.Number(1) // ThreadDescriptor
	threadTID    = protowire.Number(2)
	threadName   = protowire.Number(5)
	counterUnit  = protowire.Number(3) // CounterDescriptor

	eventAnnotations = protowire.Number(4) // TrackEvent
	eventCategories  = protowire.Number(3)
	eventType        = protowire.Number(9)
	eventName        = protowire.Number(10)
	eventTrack       = protowire.Number(11)
	eventCounter     = protowire.Number(30)
	eventFlows       = protowire.Number(47) // fixed64

	annotationName    = protowire.Number(1) // DebugAnnotation
	annotationInt     = protowire.Number(4)
	annotationString  = protowire.Number(6)
	annotationStringI = protowire.Number(17)

	internedCategories = protowire.Number(1) // InternedData
	internedNames      = protowire.Number(2)
	internedArgNames   = protowire.Number(3)
	internedStrings    = protowire.Number(29)
	internedIID        = protowire.Number(1) // EventName and its like, InternedString
	internedText       = protowire.Number(2)
)

// Values of enumerations.
const (
	stateCleared = 1 // TracePacket.SequenceFlags
	needsState   = 2

	sliceBegin = 1 // TrackEvent.Type
	sliceEnd   = 2
	instant    = 3
	counter    = 4

	unitCount = 2 // CounterDescriptor.Unit
	unitBytes = 3

	clockRealtime  = 1 // BuiltinClock
	clockMonotonic = 3
)
