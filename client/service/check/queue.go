package check

// queue is a heap of the checks that wait for their next question, the next one first.
type queue []*item

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push is for package container/heap.
func (q *queue) Push(x any) {
	it := x.(*item)
	it.index = len(*q)
	*q = append(*q, it)
}

// Pop is for package container/heap.
func (q *queue) Pop() any {
	old := *q
	last := len(old) - 1
	it := old[last]
	old[last] = nil
	it.index = -1
	*q = old[:last]
	return it
}
