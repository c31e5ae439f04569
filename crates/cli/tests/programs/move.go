// Moves bytes between two sockets of its own: the tests build it with CGO_ENABLED=0.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"time"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func stream(size, count int) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	must(err)
	got := make(chan int64)
	go func() {
		connection, err := listener.Accept()
		must(err)
		total, err := io.Copy(io.Discard, connection)
		must(err)
		must(connection.Close())
		got <- total
	}()
	connection, err := net.Dial("tcp4", listener.Addr().String())
	must(err)
	for range count {
		_, err := connection.Write(make([]byte, size))
		must(err)
	}
	must(connection.Close())
	if total := <-got; total != int64(size*count) {
		log.Fatal(total)
	}
}

func datagrams(size, count int) {
	receiver, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(err)
	sender, err := net.DialUDP("udp4", nil, receiver.LocalAddr().(*net.UDPAddr))
	must(err)
	buffer := make([]byte, 65536)
	for range count {
		_, err := sender.Write(make([]byte, size))
		must(err)
		received, err := receiver.Read(buffer)
		must(err)
		if received != size {
			log.Fatal(received)
		}
	}
}

// One thread sends more than it may for an hour; the first works on, and does not wait for it.
func others(size int) {
	receiver, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(err)
	sender, err := net.DialUDP("udp4", nil, receiver.LocalAddr().(*net.UDPAddr))
	must(err)
	sent := make(chan bool, 2)
	go func() {
		for range 2 {
			sent <- true
			_, err := sender.Write(make([]byte, size))
			must(err)
		}
	}()
	<-sent
	<-sent
	file, err := os.Create("ticks")
	must(err)
	for range 100 {
		_, err := fmt.Fprintln(file, "tick")
		must(err)
	}
	must(file.Close())
}

// Connections of which the first takes the limit for an hour: what the others send or receive has to end at
// its deadline.
func deadlines(size, count int) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	must(err)
	message, sends := make([]byte, size), os.Args[1] == "send-until"
	go func() {
		for {
			connection, err := listener.Accept()
			must(err)
			if !sends {
				_, err := connection.Write(message)
				must(err)
			}
			go func() {
				_, err := io.Copy(io.Discard, connection)
				must(err)
			}()
		}
	}()
	connections := make([]net.Conn, count)
	for number := range connections {
		connections[number], err = net.Dial("tcp4", listener.Addr().String())
		must(err)
	}
	move := func(connection net.Conn) error {
		if sends {
			_, err := connection.Write(message)
			return err
		}
		_, err := io.ReadFull(connection, make([]byte, size))
		return err
	}
	must(move(connections[0]))
	ended := make(chan error)
	for _, connection := range connections[1:] {
		must(connection.SetDeadline(time.Now().Add(200 * time.Millisecond)))
		go func() { ended <- move(connection) }()
	}
	for range connections[1:] {
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			log.Fatal(err)
		}
	}
}

func main() {
	size, err := strconv.Atoi(os.Args[2])
	must(err)
	count, err := strconv.Atoi(os.Args[3])
	must(err)
	switch os.Args[1] {
	case "stream":
		stream(size, count)
	case "datagrams":
		datagrams(size, count)
	case "others":
		others(size)
	case "send-until", "receive-until":
		deadlines(size, count)
	}
}
