// Command kfake runs one broker of franz-go's kfake as a process, for the recipe in docs/targets.md.
package main

import (
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

// advertised is a listener that reports another address than the one it listens on. kfake returns it in Metadata.
type advertised struct {
	net.Listener
	addr net.Addr
}

func (a advertised) Addr() net.Addr { return a.addr }

func main() {
	listen := flag.String("listen", "127.0.0.1:9092", "address of the client listener")
	advertise := flag.String("advertise", "", "address that clients connect to (default: that of the listener)")
	data := flag.String("data", "", "directory of the data, which a restarted broker reads again")
	id := flag.Int("id", 1, "node id")
	settings := map[string]string{}
	flag.Func("properties", "file of broker settings, NAME=VALUE in each line", func(file string) error {
		content, err := os.ReadFile(file)
		for line := range strings.Lines(string(content)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			settings[name] = value
		}
		return err
	})
	flag.Parse()
	if *advertise == "" {
		*advertise = *listen
	}
	public, err := net.ResolveTCPAddr("tcp", *advertise)
	if err != nil {
		log.Fatal(err)
	}

	// kfake numbers its nodes from 0. The last node is the controller and stays; the other nodes are removed.
	opened := 0
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(*id+1),
		kfake.BrokerConfigs(settings),
		kfake.DataDir(*data),
		kfake.SyncWrites(),
		kfake.ListenFn(func(network, _ string) (net.Listener, error) {
			opened++
			if opened <= *id {
				return net.Listen(network, "127.0.0.1:0")
			}
			listener, err := net.Listen(network, *listen)
			if err != nil {
				return nil, err
			}
			return advertised{listener, public}, nil
		}),
	)
	if err != nil {
		log.Fatal(err)
	}
	for other := range *id {
		if err := cluster.RemoveNode(int32(other)); err != nil {
			log.Fatal(err)
		}
	}

	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
	cluster.Close()
}
