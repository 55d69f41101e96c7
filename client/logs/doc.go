// Package logs is a task's output on disk: FIFOs which the task writes to, rotated files which the supervisor fills
// from them, and streams which the endpoints read those files with.
//
//	alloc/logs/.<task>.<kind>.fifo    opened read-write by task and supervisor
//	alloc/logs/<task>.<kind>.<n>      n counts up from 0; at most max_files of at most max_file_size are kept
//
// One writer per FIFO, any number of readers per file. Tasks may write in alloc/logs themselves, so a writer creates
// and opens files only where no link stands in its way, and readers go through allocdir.
package logs
