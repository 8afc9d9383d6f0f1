// Times porcupine on histories that it reads as JSON, through its public API, and writes the results as JSON.
//
// Standard input: one line per request, {"name", "model", "rounds", "timeout_ms", "events": [...]}, where an event is
// [kind, id, process, f, key, a, b] with kind 0 (invoked) or 1 (returned). Standard output: one line per request,
// {"name", "result", "ns"}: the shortest of the rounds, in processor time. It is started with GOMAXPROCS=1.
package main

import (
	"bufio"
	"encoding/json"
	"hash/maphash"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/anishathalye/porcupine"
)

type request struct {
	Name      string              `json:"name"`
	Model     string              `json:"model"`
	Rounds    int                 `json:"rounds"`
	TimeoutMs int64               `json:"timeout_ms"`
	Events    [][]json.RawMessage `json:"events"`
}

type response struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Ns     int64  `json:"ns"`
}

const (
	read = iota
	write
	cas
	get
	put
	appendTo
)

var operations = map[string]int{"read": read, "write": write, "cas": cas, "get": get, "put": put, "append": appendTo}

type registerCall struct{ f, a, b int }

// A registerResult with an unknown outcome permits every state.
type registerResult struct {
	unknown, done bool
	value         int
}

const unset = -1

func stepRegister(state, input, output interface{}) (bool, interface{}) {
	value, call, result := state.(int), input.(registerCall), output.(registerResult)
	switch call.f {
	case read:
		return result.unknown || result.value == value, value
	case write:
		return true, call.a
	}
	if value == call.a {
		return result.unknown || result.done, call.b
	}
	return result.unknown || !result.done, value
}

var register = porcupine.Model{Init: func() interface{} { return unset }, Step: stepRegister}

type storeCall struct {
	f          int
	key, value string
}

var seed = maphash.MakeSeed()

func stepStore(state, input, output interface{}) (bool, interface{}) {
	value, call := state.(string), input.(storeCall)
	switch call.f {
	case get:
		return output.(string) == value, value
	case put:
		return true, call.value
	}
	return true, value + call.value
}

func byKey(history []porcupine.Event) [][]porcupine.Event {
	parts := map[string][]porcupine.Event{}
	keys := map[int]string{}
	order := []string{}
	for _, event := range history {
		if event.Kind == porcupine.CallEvent {
			keys[event.Id] = event.Value.(storeCall).key
		}
		key := keys[event.Id]
		if _, known := parts[key]; !known {
			order = append(order, key)
		}
		parts[key] = append(parts[key], event)
	}
	split := make([][]porcupine.Event, 0, len(order))
	for _, key := range order {
		split = append(split, parts[key])
	}
	return split
}

var store = porcupine.Model{
	Init:           func() interface{} { return "" },
	Step:           stepStore,
	PartitionEvent: byKey,
	Hash:           func(state interface{}) uint64 { return maphash.String(seed, state.(string)) },
}

// processorNs is what all threads of this process have used, where the kernel keeps it exactly: Linux.
func processorNs() int64 {
	const processClock = 2
	var now syscall.Timespec
	if _, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, processClock, uintptr(unsafe.Pointer(&now)), 0); failed != 0 {
		panic(failed)
	}
	return now.Nano()
}

func decode[T any](raw json.RawMessage) (value T) {
	if err := json.Unmarshal(raw, &value); err != nil {
		panic(err)
	}
	return value
}

func events(given request) []porcupine.Event {
	history := make([]porcupine.Event, 0, len(given.Events))
	for _, raw := range given.Events {
		event := porcupine.Event{Id: decode[int](raw[1]), ClientId: decode[int](raw[2])}
		if decode[int](raw[0]) == 1 {
			event.Kind = porcupine.ReturnEvent
		}
		event.Value = value(given.Model, event.Kind, raw)
		history = append(history, event)
	}
	return history
}

func value(model string, kind porcupine.EventKind, raw []json.RawMessage) interface{} {
	f := operations[decode[string](raw[3])]
	if model == "store" {
		if kind == porcupine.CallEvent {
			return storeCall{f, decode[string](raw[4]), decode[string](raw[5])}
		}
		return decode[string](raw[5])
	}
	a, b := decode[int](raw[5]), decode[int](raw[6])
	if kind == porcupine.CallEvent {
		return registerCall{f, a, b}
	}
	return registerResult{unknown: b == 2, done: b == 1, value: a}
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	responses := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		given := decode[request](line)
		history := events(given)
		model := register
		if given.Model == "store" {
			model = store
		}
		best := response{Name: given.Name}
		for round := 0; round < given.Rounds; round++ {
			begin := processorNs()
			result := porcupine.CheckEventsTimeout(model, history, time.Duration(given.TimeoutMs)*time.Millisecond)
			ns := processorNs() - begin
			if round == 0 || ns < best.Ns {
				best.Ns = ns
			}
			best.Result = string(result)
		}
		if err := responses.Encode(best); err != nil {
			panic(err)
		}
	}
}
