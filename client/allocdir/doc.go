// Package allocdir lays out an allocation's directory on the node and reads from it on behalf of the file system
// endpoints. The alloc runner builds and destroys it; the endpoints list, stat and open below it.
//
//	<alloc_dir>/<alloc id>/alloc/{data,logs,tmp}    shared by all tasks of the allocation
//	<alloc_dir>/<alloc id>/<task>/{local,secrets,tmp}
//
// Tasks may write almost anywhere below, so everything that reads on behalf of others goes through an os.Root: links
// and ".." never lead out, and secrets are never read. Build and Destroy may run any number of times, also after a
// crash in the middle of either.
package allocdir
