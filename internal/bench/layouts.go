// SPDX-License-Identifier: MPL-2.0

package bench

// layout is how a campaign is reported.
type layout struct {
	title, intro string
	// subject is the word for what is compared.
	subject string
	// primary is the measure that subjects are compared by, and reference the subject that the others are set beside.
	primary, primaryTitle, reference string
	// steps are what the breakdown is made of.
	steps      []step
	stepsTitle string
	tables     []table
	// limits say what the figures show and what they do not.
	limits []string
}

// step is one part of a breakdown.
type step struct{ measure, title string }

var layouts = map[string]*layout{
	ProvisioningName: {
		title: "Provisioning",
		intro: "How long it takes to get to a correct result on a machine, by the way in which the machine is got. The data are readings of a " +
			"thousand stations, made by a formula: they are compressed, aggregated into a table in memory (`/dev/shm`), and the table is saved on disk. " +
			"Every trial must give the right line for one station from disk and then from memory.",
		subject: "path", primary: memoryMS, primaryTitle: "time to the result from memory", reference: "fresh",
		stepsTitle: "median of each step to the result from memory, and of cleaning up",
		steps: []step{
			{createMS, "create"},
			{startMS, "start"},
			{restoreMS, "restore"},
			{usableMS, "until usable"},
			{aroundMS, "admission and reading back"},
			{prepareMS, "prepare data"},
			{diskQueryMS, "query disk"},
			{loadMS, "load table"},
			{memoryQueryMS, "query memory"},
			{cleanupMS, "clean up"},
		},
		tables: []table{
			{title: "Results", intro: "Both results count from the start of the trial; that from memory comes second and includes the first.", columns: []column{
				{title: "disk, median", measure: diskMS, of: median},
				{title: "disk, p95", measure: diskMS, of: p95},
				{title: "memory, median", measure: memoryMS, of: median},
				{title: "memory, p95", measure: memoryMS, of: p95},
				{title: "cleanup, median", measure: cleanupMS, of: median},
			}},
			{
				title: "Resources",
				intro: "Medians up to the result from memory. Processor time and memory peak of the machine are what the daemon says of it. The pool's space " +
					"is a single observation, before the trials: how much more was in use when one more machine was there and its file system flushed. Host columns are of the whole host, with everything else that ran on it.",
				columns: []column{
					{title: "machine, processor time", measure: machineCPUMS, of: median},
					{title: "machine, memory peak", measure: machinePeak, of: median},
					{title: "pool, more in use", measure: poolGrowth, stage: spaceStage},
					{title: "host, processor time", measure: hostCPUMS, of: median},
					{title: "host, more memory in use", measure: hostMemory, of: median},
				},
			},
		},
		limits: []string{
			"They compare ways to one small workload on one host. They do not rank applications, hosts or hypervisors.",
			"Export and branch load the saved table and do not make it again: none gets credit for work that a saved file avoids as well.",
			"A branch of a container has the disk of its source and none of its memory. What it saves is the preparation; a boot it does not save.",
			"A virtual machine that goes back to a checkpoint, and a live branch of one, go on from its memory: they save the boot, too.",
			"Preparation is not in the times of export, checkpoint, branches and existing. It is in the stages above, and belongs in any plan for few machines.",
			"Existing is no new environment: what was done before is still there. Its memory peak is that of its own preparation, and not given.",
			"No caches were dropped, and the image was unpacked ahead: nothing here is a cold start. Memory includes page cache.",
			"After each trial the machine overwrote both of its tables and the parent still gave the right answers; then the machine was deleted and looked for.",
		},
	},
	InnerLoopName: {
		title: "Inner loop",
		intro: "What a test suite repeats all day, by the storage driver of the pool: launch, snapshot, restore. Restored is when a command runs again, " +
			"not when the daemon's call returned; both are given.",
		subject: "driver", primary: fourCycleMS, primaryTitle: "snapshot of four machines and the way back", reference: plainDriver,
		stepsTitle: "medians of the four-machine cycle",
		steps: []step{
			{fourLaunchMS, "launch four"},
			{fourSnapshotMS, "snapshot four"},
			{fourRestoreMS, "restore four"},
			{fourRemoveMS, "remove four"},
		},
		tables: []table{
			{title: "One machine", intro: "Medians, from the start of each call.", turned: true, columns: []column{
				{title: "launch returned", measure: launchMS, of: median},
				{title: "launch, usable", measure: launchedMS, of: median},
				{title: "snapshot", measure: snapshot1, of: median},
				{title: "snapshot again", measure: snapshot2, of: median},
				{title: "snapshot a third time", measure: snapshot3, of: median},
				{title: "restore returned", measure: restoreMS, of: median},
				{title: "restore, usable", measure: restoredMS, of: median},
				{title: "restore, usable, p95", measure: restoredMS, of: p95},
				{title: "space of three snapshots", measure: snapshotsBytes, of: median},
				{title: "removed", measure: removeMS, of: median},
			}},
			{title: "Four machines side by side", intro: "Medians. The cycle is what is repeated: the snapshot of all four, and the way back until all four are usable.", turned: true, columns: []column{
				{title: "launch, usable", measure: fourLaunchMS, of: median},
				{title: "snapshot", measure: fourSnapshotMS, of: median},
				{title: "restore, usable", measure: fourRestoreMS, of: median},
				{title: "cycle", measure: fourCycleMS, of: median},
				{title: "cycle, p95", measure: fourCycleMS, of: p95},
				{title: "removed", measure: fourRemoveMS, of: median},
			}},
		},
		limits: []string{
			"They compare storage drivers with one small image. A bigger disk costs more where it is copied and no more where it is shared, so the difference grows with it.",
			"The plain directories are worked on through the client, with no checks around the calls; the other pools by the verbs of a lab, which admit, lock and read back. That counts against the latter.",
			"The space of directories is that of the host's file system, where others write too.",
			"The plain directories unpack the image at each launch; the others do so once for each pool, which is in the warm-up row.",
			"These are containers. A virtual machine adds the boot of a kernel to every launch and restore, on each driver alike.",
		},
	},
}
