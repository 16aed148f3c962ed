// Estimators of many clusters in one process, for measurements: all of them answer at once with the same number,
// except those that are set to hang. They use the wire format of karmada-scheduler-estimator without its
// types: a request is bytes, and the answer is one int32 in field 1.
//
//	fleet COUNT ANSWER < commands
//
// It prints one port per estimator, one per line, and then executes lines of standard input: "hang I" and
// "answer I" with the number of an estimator, counted from 0; "calls" prints how many calls there were. It ends with
// its standard input.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
)

type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (raw) Name() string { return "proto" }

type estimator struct{ hangs atomic.Bool }

func main() {
	count, _ := strconv.Atoi(os.Args[1])
	available, _ := strconv.Atoi(os.Args[2])
	answer := append([]byte{8}, binary.AppendUvarint(nil, uint64(available))...)
	var calls atomic.Int64
	fleet := make([]*estimator, count)
	for index := range fleet {
		one := &estimator{}
		fleet[index] = one
		server := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(
			func(_ any, stream grpc.ServerStream) error {
				var request []byte
				if err := stream.RecvMsg(&request); err != nil {
					return err
				}
				calls.Add(1)
				if one.hangs.Load() {
					<-stream.Context().Done()
					return stream.Context().Err()
				}
				return stream.SendMsg(&answer)
			}))
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go server.Serve(listener)
		fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 1 && words[0] == "calls":
			fmt.Println(calls.Load())
		case len(words) == 2:
			index, err := strconv.Atoi(words[1])
			if err != nil || index < 0 || index >= count {
				fmt.Fprintln(os.Stderr, "no such estimator:", words[1])
				os.Exit(2)
			}
			fleet[index].hangs.Store(words[0] == "hang")
		}
	}
}
