//! Each rank has some numbers; all get their mean. Run it as
//! `lmt run -n 4 -- target/release/examples/mean`.

use lmt_collectives::{Element, Group, Operation, Operator, Reduction};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    lmt::launch::hook();
    let job = lmt::launch::Group::from_env()?.ok_or("start it with `lmt run -n 4`")?;
    let endpoint = lmt::Endpoint::builder().id(job.id.member(job.rank)).build()?;
    let group = Group::from_launch(&endpoint, &job)?;

    let numbers: Vec<f64> = (1..=1000).map(|number| f64::from(number * (job.rank + 1))).collect();
    let own = [numbers.iter().sum::<f64>(), numbers.len() as f64];
    let mut both = own.map(f64::to_ne_bytes).concat();
    let sum = Reduction::new(Operator::Sum, Element::F64)?;
    group.run(Operation::allreduce_in_place(&mut both[..], &sum))?;

    let (total, count) = both.split_at(8);
    let mean = f64::from_ne_bytes(total.try_into()?) / f64::from_ne_bytes(count.try_into()?);
    if group.rank() == 0 {
        println!("the mean of {} ranks' numbers is {mean}", group.size());
    }
    Ok(())
}
