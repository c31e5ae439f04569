// A web server and a client without any library of the machine: the tests build it with CGO_ENABLED=0.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	if os.Args[1] == "serve" {
		http.HandleFunc("/", func(writer http.ResponseWriter, _ *http.Request) {
			name, _ := os.Hostname()
			fmt.Fprintln(writer, "hello from", name)
		})
		log.Fatal(http.ListenAndServe(":80", nil))
	}
	response, err := http.Get(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	io.Copy(os.Stdout, response.Body)
}
