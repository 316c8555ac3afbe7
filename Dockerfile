# pgaccel as an image: built with Go and a C compiler, run on plain Debian.
ARG GO_IMAGE=golang:1.26-bookworm
ARG RUN_IMAGE=debian:bookworm-slim
FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN go build -buildvcs=false -o /pgaccel ./cmd/pgaccel

FROM ${RUN_IMAGE}
COPY --from=build /pgaccel /usr/local/bin/pgaccel
RUN useradd --system --no-create-home pgaccel
USER pgaccel
EXPOSE 6432 8432
ENTRYPOINT ["pgaccel"]
CMD ["serve"]
